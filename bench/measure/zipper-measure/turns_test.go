package main

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/leidenzipper/zipper/bench/drive"
	"github.com/leidenzipper/zipper/bench/lab"
	"github.com/leidenzipper/zipper/bench/measure"
)

// TestMixedOrderDiffersByRound checks that the mixed order of sizes differs from round to round
// and is the same in all modes of a round.
func TestMixedOrderDiffersByRound(t *testing.T) {
	sizes := func() []int { return measure.Between(1, 1<<20, true) }
	p := &sweep{order: mixed}
	a, b, c := p.inOrder(sizes(), 0), p.inOrder(sizes(), 0), p.inOrder(sizes(), 1)
	if !slices.Equal(a, b) || slices.Equal(a, c) || slices.IsSorted(a) {
		t.Error(a, b, c)
	}
	p.order = down
	if d := p.inOrder(sizes(), 0); d[0] != 1<<20 || d[len(d)-1] != 1 {
		t.Error(d)
	}
}

// TestJobsOfARound checks that each operation has its own job, or that all operations except
// threads share one job. An operation that has none of the sizes is in no job.
func TestJobsOfARound(t *testing.T) {
	_, p, _ := parsed[*sweep](t, "sweep --program p --on bcast|threads|barrier|beside --sizes 4,128K")
	if jobs := p.jobs(0); len(jobs) != 3 || jobs[0][0].operation != "threads" || !slices.Equal(jobs[0][0].sizes, []int{4}) {
		t.Errorf("%v", jobs)
	}
	p.together = true
	if jobs := p.jobs(0); len(jobs) != 2 || len(jobs[0]) != 1 || len(jobs[1]) != 2 || !slices.Equal(jobs[1][0].sizes, []int{0}) {
		t.Errorf("%v", jobs)
	}
}

// names returns the names of a round's steps and of the targets of the first one.
func names(p *longhaul, round int) (steps, targets []string) {
	all := p.steps(&measurement{lab: &lab.Lab{}}, round)
	for _, s := range all {
		steps = append(steps, s.name)
	}
	for _, t := range all[0].targets {
		targets = append(targets, t.name)
	}
	return steps, targets
}

func TestLaterRoundsMeasureTheTrunkAlone(t *testing.T) {
	_, p, _ := parsed[*longhaul](t, "longhaul --program p --others 1")
	steps, targets := names(p, 0)
	if len(targets) != 6 || !slices.Contains(steps, measure.Outage.Name) {
		t.Error(steps, targets)
	}
	steps, targets = names(p, 1)
	if !slices.Equal(targets, []string{onTrunk}) || slices.Contains(steps, measure.Outage.Name) ||
		!slices.Contains(steps, measure.Restart.Name) {
		t.Error(steps, targets)
	}
}

// TestOnlySelectedRowsAreMeasured checks that a step runs if one of its rows is selected, and that
// it gives only the values of the selected rows.
func TestOnlySelectedRowsAreMeasured(t *testing.T) {
	_, p, _ := parsed[*longhaul](t, "longhaul --program p --only ^memory|fairness --on trunk|TCP")
	steps, targets := names(p, 0)
	if want := []string{measure.Pairs2.Name, measure.Pairs8.Name, measure.Pairs32.Name}; !slices.Equal(steps, want) ||
		!slices.Equal(targets, []string{onTrunk}) {
		t.Error(steps, targets)
	}
	last := p.steps(&measurement{lab: &lab.Lab{}}, 0)[2]
	if len(last.rows) != 2 || last.rows[0].Name != measure.Memory.Name || last.rows[1].Name != measure.Fairness(measure.Pairs32).Name {
		t.Errorf("%+v", last.rows)
	}
}

// TestFailureIsNotedAndOthersAreMeasured checks that targets run in the reverse order in every
// second round. When a target fails, the report has the reason in its rows without a sample, and
// the run ends with an error.
func TestFailureIsNotedAndOthersAreMeasured(t *testing.T) {
	var order []string
	rows := []measure.Row{{Name: "bcast", Size: 8}, {Name: "bcast", Size: 16}}
	one := step{name: "bcast", rows: rows, targets: []target{{name: "zipped"}, {name: "routed"}},
		run: func(_ context.Context, t target) ([]sample, error) {
			order = append(order, t.name)
			if t.name == "zipped" {
				return []sample{{rows[0], 1}}, errors.New("no network")
			}
			return []sample{{rows[0], 2}, {rows[1], 3}}, nil
		}}
	r := &measure.Report{Environment: drive.Environment{}, Targets: []string{"zipped", "routed"}}
	m := &measurement{session: &session{report: r, steps: func(*measurement, int) []step { return []step{one} }}}
	if err := m.all(t.Context(), 2); err == nil || r.Rounds != 2 {
		t.Errorf("%v after %d rounds", err, r.Rounds)
	}
	if want := []string{"zipped", "routed", "routed", "zipped"}; !slices.Equal(order, want) {
		t.Error(order)
	}
	for _, f := range r.Figures {
		missing := f.Target == "zipped" && f.Size == 16
		if missing != (f.Reason == "no network") || missing != (len(f.Values) == 0) {
			t.Errorf("%+v", f)
		}
	}
	if len(r.Figures) != 4 {
		t.Errorf("%d figures", len(r.Figures))
	}
}
