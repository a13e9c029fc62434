package engine

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// shrink runs a job that failed again and again, in processes of their own, with fewer and fewer of
// its events. It returns the command that repeats the shortest job that fails, and its events.
func shrink(t *testing.T, net mangledNet, seed uint64, planned int, met []*event) string {
	self, err := os.Executable()
	if err != nil {
		return err.Error()
	}
	spell := func(events []*event) string {
		s := fmt.Sprintf("%s/%d/%d/", net.name, seed, planned)
		for _, ev := range events {
			s += fmt.Sprintf("%d,", ev.Number)
		}
		return strings.TrimSuffix(s, ",")
	}
	end := time.Now().Add(4 * time.Minute)
	left := fewest(met, func(some []*event) bool {
		for range 3 { // an event may happen to another frame each time
			ctx, cancel := context.WithDeadline(t.Context(), end)
			cmd := exec.CommandContext(ctx, self, "-test.run", "^TestMangled$", "-test.timeout", "3m")
			cmd.Env = append(os.Environ(), mangledCase+"="+spell(some))
			err := cmd.Run()
			late := ctx.Err() != nil
			cancel()
			if late {
				return false
			}
			if err != nil {
				return true
			}
		}
		return false
	})
	return fmt.Sprintf("%s='%s' go test -run '^TestMangled$' ./mmpi/engine\n%s", mangledCase, spell(left), listed(left))
}

// fewest returns a short list of events that fails, given that the whole does. It uses delta
// debugging.
func fewest(all []*event, fails func(some []*event) bool) []*event {
	for size := (len(all) + 1) / 2; size >= 1 && len(all) > 1; {
		shorter := false
		for from := 0; from < len(all) && len(all) > 1; {
			some := slices.Concat(all[:from], all[min(from+size, len(all)):])
			if len(some) > 0 && fails(some) {
				all, shorter = some, true
			} else {
				from += size
			}
		}
		if size == 1 && !shorter {
			break
		}
		size = max(1, size/2)
		if size == 1 && len(all) == 1 {
			break
		}
	}
	return all
}

// runCase runs the job that mangledCase describes.
func runCase(t *testing.T, which string) {
	f := strings.Split(which, "/")
	if len(f) != 4 {
		t.Fatalf("%s=%q", mangledCase, which)
	}
	i := slices.IndexFunc(mangledNets, func(n mangledNet) bool { return n.name == f[0] })
	seed, err := strconv.ParseUint(f[1], 10, 64)
	planned, err2 := strconv.Atoi(f[2])
	if i < 0 || err != nil || err2 != nil {
		t.Fatalf("%s=%q", mangledCase, which)
	}
	events := plan(seed, planned)
	some := slices.DeleteFunc(slices.Clone(events), func(ev *event) bool {
		return !slices.Contains(strings.Split(f[3], ","), strconv.Itoa(ev.Number))
	})
	o := mangledNets[i].run(t, seed, some)
	t.Logf("%d rounds, %d losses\n%s", o.rounds, o.losses, listed(o.met))
	if o.err != nil {
		t.Error(o.err)
	}
}

// TestFewestFindsEventsOfTheFailure checks that fewest finds the events that a failure needs among
// many.
func TestFewestFindsEventsOfTheFailure(t *testing.T) {
	all, runs := plan(1, 200), 0
	left := fewest(all, func(some []*event) bool {
		runs++
		has := func(k int) bool { return slices.ContainsFunc(some, func(ev *event) bool { return ev.Number == k }) }
		return has(17) && has(142)
	})
	if len(left) != 2 || left[0].Number != 17 || left[1].Number != 142 || runs > 100 {
		t.Errorf("%d runs, left:\n%s", runs, listed(left))
	}
}
