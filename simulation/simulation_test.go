package simulation

import (
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/leidenzipper/zipper/internal/seeds"
)

// which returns the range of seeds to run: those asked for by the environment, or else 60. With
// ZIPPER_LONG=1 there are 20 000, with ZIPPER_LONG=N there are N thousand.
func which(t *testing.T) (from, to uint64) {
	from, to, err := seeds.Asked()
	if err != nil {
		t.Fatal(err)
	}
	if to > 0 {
		return from, to
	}
	switch n, err := strconv.ParseUint(os.Getenv("ZIPPER_LONG"), 10, 64); {
	case err != nil || n < 1:
		return 0, 60
	case n == 1:
		return 0, 20_000
	default:
		return 0, n * 1000
	}
}

// memoryLimit is the size in bytes from which on the garbage collector runs more often than its
// percentage demands. Without it 5000 seeds took 8 GB, and 10^5 more than 24 GB.
const memoryLimit = 1 << 30

// TestSeeds checks for each seed that every result is right, that all ranks end or get an error,
// and that nothing is left behind or counted wrong.
func TestSeeds(t *testing.T) {
	var failed, faults, direct atomic.Int64
	runs := runSeeds(t, Draw, func(p Plan, o Outcome) {
		direct.Add(int64(o.Direct))
		faults.Add(int64(len(p.Faults)))
		if o.Failed {
			failed.Add(1)
		}
	})
	t.Logf("%s; %d faults, %d jobs failed as they may, %d links on demand", runs, faults.Load(), failed.Load(),
		direct.Load())
}

// runSeeds runs the plan that draw draws for each seed of the range (which), on all processors, and
// fails the test for those with an error, of which it reports a few. seen gets each plan and its
// outcome, and is called concurrently. runSeeds returns the number of runs and their mean times.
func runSeeds(t *testing.T, draw func(seed uint64) Plan, seen func(Plan, Outcome)) (summary string) {
	t.Helper()
	from, to := which(t)
	// Runs have little live memory, apart from a few with hundreds of MB, of which the heap would
	// grow to a multiple.
	defer debug.SetGCPercent(debug.SetGCPercent(400))
	defer debug.SetMemoryLimit(debug.SetMemoryLimit(memoryLimit))
	var next, steps, bad atomic.Uint64
	var virtual atomic.Int64
	next.Store(from)
	begin := time.Now()
	most, tell := uint64(5), transcript
	if os.Getenv(mutantVariable) != "" { // only the first seed that finds the mutant matters
		most, tell = 1, func(Plan) string { return "" }
	}
	var all sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		all.Go(func() {
			for s := next.Add(1) - 1; s < to && bad.Load() < most; s = next.Add(1) - 1 {
				p := draw(s)
				o := Run(p, to == from+1)
				steps.Add(o.Steps)
				virtual.Add(int64(o.Virtual))
				seen(p, o)
				if o.Err != nil {
					bad.Add(1)
					t.Errorf("%s=%d go test -run %s ./simulation\n%s", seeds.Variable, s, t.Name(), tell(p))
				}
				if to == from+1 {
					t.Log(o.History)
				}
			}
		})
	}
	all.Wait()
	n := time.Duration(to - from)
	return fmt.Sprintf("%d runs, %v each, %v in virtual time, %d steps", to-from, time.Since(begin)/n,
		time.Duration(virtual.Load())/n, steps.Load()/(to-from))
}

// TestPastFailures repeats seeds that failed in the past and are beyond those of TestSeeds. No
// script of the forwarder covers them: a trunk connection that is still warming up when the job
// ends (99), a break of the connection that is in use (3274, 3485), and two forwarders of a row
// that restart at the job's end (42091337, 43102913).
func TestPastFailures(t *testing.T) {
	for _, s := range []uint64{99, 3274, 3485, 42091337, 43102913} {
		if o := Run(Draw(s), false); o.Err != nil {
			t.Errorf("seed %d: %s", s, transcript(Draw(s)))
		}
	}
}

// transcript returns the last lines of a failing run, after its plan has been reduced.
func transcript(p Plan) string {
	p = Fewest(p)
	o := Run(p, true)
	lines := strings.Split(o.History, "\n")
	return fmt.Sprintf("%v%s\n%v", p, strings.Join(lines[max(0, len(lines)-60):], "\n"), o.Err)
}

// TestSameAgain checks that two runs of a seed have the same events.
func TestSameAgain(t *testing.T) {
	for i := range uint64(24) {
		s, draw := i/2, Draw
		if i%2 == 1 {
			draw = DrawLosses
		}
		a, b := Run(draw(s), true), Run(draw(s), true)
		if a.Trace != b.Trace || a.Steps != b.Steps || a.Virtual != b.Virtual {
			t.Errorf("seed %d: %d steps in %v, then %d in %v; %s", s, a.Steps, a.Virtual, b.Steps, b.Virtual,
				differ(a.History, b.History))
		}
	}
}

func differ(a, b string) string {
	x, y := strings.Split(a, "\n"), strings.Split(b, "\n")
	for i := range min(len(x), len(y)) {
		if x[i] != y[i] {
			return fmt.Sprintf("line %d:\n%s\n%s", i, x[i], y[i])
		}
	}
	return "the histories are the same"
}
