package e2e

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"
)

// TestRandom runs the randomized tester (test/programs/c/random.c): random graphs of sends and
// receives, collectives and communicators. The short form has 600 operations with seed 1 and with a
// new seed on every run; --long: over all splits, the new seed with 10 000 operations.
// ZIPPER_SEED=n runs that seed only, ZIPPER_OPERATIONS=n sets the number of operations. A failing
// seed is minimized: the test prints the command that shows the failure with the fewest operations
// found.
func TestRandom(t *testing.T) {
	New(t)
	few, many, splits := 600, 600, []split{twoOne, oneOneOne, mixed}
	if long() {
		many, splits = 10000, every
	}
	if n, err := strconv.Atoi(os.Getenv("ZIPPER_OPERATIONS")); err == nil {
		few, many = n, n
	}
	type run struct {
		seed       string
		operations int
	}
	for _, s := range splits {
		runs := []run{{"1", few}, {fmt.Sprint(rand.Uint32()), many}}
		if s := os.Getenv("ZIPPER_SEED"); s != "" {
			runs = []run{{s, many}}
		}
		t.Run(s.name, func(t *testing.T) {
			for _, r := range runs {
				b, seed, operations := New(t), r.seed, r.operations
				path := compileFor(b, s.clusters, "c/random.c")
				t.Logf("seed %s, %d operations over %s", seed, operations, s.name)
				native := b.OK(b.Native(OpenMPI, s.ranks(), strings.ReplaceAll(path, "{mpi}", OpenMPI), seed,
					fmt.Sprint(operations)))
				zipped, over := zippedWithin(b, s, b.Limit-5*time.Second, path, seed, fmt.Sprint(operations))
				if over && zipped.Status == 0 {
					b.Same(native, zipped, nil)
					continue
				}
				t.Errorf("seed %s fails:\n%v", seed, zipped)
				skip := minimize(operations, 5*time.Minute, func(skip string) bool {
					r, over := zippedWithin(b, s, 30*time.Second, path, seed, fmt.Sprint(operations), skip)
					return !over || r.Status != 0
				})
				t.Fatalf("fewest operations found: %s %s %d %s, over %s", path, seed, operations, skip, s.name)
			}
		})
	}
}

// zippedWithin runs a job and reports whether it ended in time; otherwise the job is interrupted.
func zippedWithin(b *Bed, s split, limit time.Duration, argv ...string) (r Result, over bool) {
	b.T.Helper()
	args, _ := b.runArgs(Job{Clusters: s.clusters})
	p := b.Start(nil, nil, append(append(args, "--"), argv...)...)
	select {
	case <-p.done:
		return p.Wait(), true
	case <-time.After(limit):
		p.cancel()
		return p.Wait(), false
	}
}

// minimize finds operations that can be left out while fails stays true (delta debugging: halves,
// quarters, … then one by one), and returns the list of those to leave out. It stops after about
// the given time.
func minimize(operations int, within time.Duration, fails func(skip string) bool) string {
	end := time.Now().Add(within)
	out := make([]bool, operations)
	for size := operations / 2; size >= 1; size /= 2 {
		// from the end: the operations after the failure are left out first
		for from := operations - size; ; from = max(0, from-size) {
			tried := append([]bool(nil), out...)
			changed := false
			for i := from; i < from+size; i++ {
				changed = changed || !tried[i]
				tried[i] = true
			}
			if changed && time.Now().Before(end) && fails(ranges(tried)) {
				out = tried
			}
			if from == 0 {
				break
			}
		}
	}
	return ranges(out)
}

// ranges writes the true elements as "3-7,9-9".
func ranges(set []bool) string {
	var s []string
	for i := 0; i < len(set); i++ {
		if set[i] {
			from := i
			for i+1 < len(set) && set[i+1] {
				i++
			}
			s = append(s, fmt.Sprintf("%d-%d", from, i))
		}
	}
	return strings.Join(s, ",")
}

func TestMinimize(t *testing.T) {
	// Fails only if operations 17 and 400 are both in the list.
	runs := 0
	got := minimize(1000, time.Minute, func(skip string) bool {
		runs++
		for r := range strings.SplitSeq(skip, ",") {
			var from, to int
			if _, err := fmt.Sscanf(r, "%d-%d", &from, &to); err == nil &&
				(from <= 17 && 17 <= to || from <= 400 && 400 <= to) {
				return false
			}
		}
		return true
	})
	if want := "0-16,18-399,401-999"; got != want {
		t.Errorf("left out %s, want %s", got, want)
	}
	if runs > 200 {
		t.Errorf("%d runs", runs)
	}
}
