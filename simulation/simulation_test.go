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

// which seeds to run: 60 in the short form, which the race detector watches, 20 000 with
// ZIPPER_LONG=1, else as many thousand as it says, or those that are asked for.
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

// TestSeeds: whatever the network does, every result is right, all ranks end or are told why, and
// nothing is kept or counted wrong.
func TestSeeds(t *testing.T) {
	from, to := which(t)
	defer debug.SetGCPercent(debug.SetGCPercent(400)) // what a run takes is small, and thrown away
	var next, failed, faults, steps, bad atomic.Uint64
	var virtual atomic.Int64
	next.Store(from)
	begin := time.Now()
	most, tell := uint64(5), transcript
	if os.Getenv(mutantVariable) != "" { // which seed finds it is all that matters
		most, tell = 1, func(Plan) string { return "" }
	}
	var all sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		all.Go(func() {
			for s := next.Add(1) - 1; s < to && bad.Load() < most; s = next.Add(1) - 1 {
				p := Draw(s)
				o := Run(p, to == from+1)
				steps.Add(o.Steps)
				virtual.Add(int64(o.Virtual))
				faults.Add(uint64(len(p.Faults)))
				if o.Failed {
					failed.Add(1)
				}
				if o.Err != nil {
					bad.Add(1)
					t.Errorf("%s=%d go test -run TestSeeds ./simulation\n%s", seeds.Variable, s, tell(p))
				}
				if to == from+1 {
					t.Log(o.History)
				}
			}
		})
	}
	all.Wait()
	n := time.Duration(to - from)
	t.Logf("%d runs with %d faults, %d jobs failed as they may; %v each, %v in virtual time, %d steps", to-from,
		faults.Load(),
		failed.Load(), time.Since(begin)/n, time.Duration(virtual.Load())/n, steps.Load()/(to-from))
}

// TestFound: runs that have failed once and are not among the first, of what a script of the
// forwarder does not bring about: a connection of a trunk that is still being warmed when the job
// ends (99), and when the connection breaks that is in use (3274, 3485); two forwarders of a row
// that are started again at the job's end (42091337, 43102913).
func TestFound(t *testing.T) {
	for _, s := range []uint64{99, 3274, 3485, 42091337, 43102913} {
		if o := Run(Draw(s), false); o.Err != nil {
			t.Errorf("seed %d: %s", s, transcript(Draw(s)))
		}
	}
}

// transcript is the end of what is left of a run that fails.
func transcript(p Plan) string {
	p = Fewest(p)
	o := Run(p, true)
	lines := strings.Split(o.History, "\n")
	return fmt.Sprintf("%v%s\n%v", p, strings.Join(lines[max(0, len(lines)-60):], "\n"), o.Err)
}

// TestSameAgain: two runs of a seed do the same.
func TestSameAgain(t *testing.T) {
	for s := range uint64(12) {
		a, b := Run(Draw(s), true), Run(Draw(s), true)
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
