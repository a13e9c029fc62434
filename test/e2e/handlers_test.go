package e2e

import (
	"testing"
	"time"
)

// TestHandlers compares a program's view of its own signal handlers, alternate stacks and masks
// with its native run: the engine's changes are not visible.
func TestHandlers(t *testing.T) {
	for _, file := range []string{"c/actions.c", "c/altstack.c", "c/masks.c"} {
		overSplits(t, program{file: file}.title(), byLength([]split{oneOne, mpichPair, mixedPair}, every), func(b *Bed, s split) {
			b.matchesNative(Job{Clusters: s.clusters}, compileFor(b, s.clusters, file, "-pthread"))
		})
	}
}

// TestSampler interrupts communication at a high rate by handlers without SA_ONSTACK that need up
// to 256 KiB of stack, as sampling profilers do.
func TestSampler(t *testing.T) {
	for _, run := range []struct {
		name   string
		args   []string
		splits []split
	}{
		{"small", []string{"1", "after", "real", "200", "2000"}, []split{oneOne}},
		{"after", []string{"64", "after", "real", "500", "2000"}, []split{twoOne, mpichPair}},
		{"before", []string{"256", "before", "prof", "500", "2000"}, []split{oneOne, mixedPair}},
		{"threads", []string{"256", "after", "timer", "500", "500", "3"}, []split{oneOne, mpichPair}},
		{"threads_before", []string{"48", "before", "real", "500", "500", "3"}, []split{mixedPair}},
	} {
		overSplits(t, run.name, byLength(run.splits, every), func(b *Bed, s split) {
			path := compileFor(b, s.clusters, "c/sampler.c", "-pthread")
			b.matchesNative(Job{Clusters: s.clusters}, append([]string{path}, run.args...)...)
		})
	}
}

// TestSamplerLong interrupts communication 5000 times a second for ten minutes.
func TestSamplerLong(t *testing.T) {
	New(t)
	if !long() {
		t.Skip("long test: scripts/test --long")
	}
	overSplits(t, "", []split{mixedPair}, func(b *Bed, s split) {
		b.Limit = 15 * time.Minute
		path := compileFor(b, s.clusters, "c/sampler.c", "-pthread")
		b.OK(b.Zipped(Job{Clusters: s.clusters}, path, "256", "after", "timer", "200", "600s", "2"))
	})
}
