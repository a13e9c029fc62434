package main

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/leidenzipper/zipper/bench/drive"
	"github.com/leidenzipper/zipper/bench/sweep"
)

func TestFlags(t *testing.T) {
	for args, want := range map[string]string{
		"":                                  "want --program",
		"--program p x":                     "no arguments",
		"--program p --on bcas":             "no such operation",
		"--program p --on (":                "missing closing",
		"--program p --sizes 0":             "want a number of bytes",
		"--program p --ranks 4":             "like 4+4",
		"--program p --ranks 0+1":           "like 4+4",
		"--program p --modes classic":       "want zipped, nat, routed",
		"--program p --modes zipped:size=1": "no such setting",
		"--program p --order no":            "up, down or mixed",
		"--program p --rounds 0":            "rounds from 1",
		"--program p --again -1":            "again from 0",
		"--program p --seconds 0":           "seconds above 0",
	} {
		_, err := parseFlags(strings.Fields(args))
		var usage drive.UsageError
		if !errors.As(err, &usage) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", args, err, want)
		}
	}
	s, err := parseFlags(strings.Fields("--program p --quick --ranks 3+5 --rate none --on bcast|iscan"))
	if err != nil || s.rounds != 1 || s.again != 0 || !slices.Equal(s.sizes, []int{8, 65536}) || len(s.ranks) != 1 ||
		s.ranks[0] != [2]int{3, 5} || s.rate != "" || len(s.operations) != 2 {
		t.Errorf("%v: %+v", err, s)
	}
	s, err = parseFlags(strings.Fields("--program p"))
	if err != nil || len(s.operations) != len(sweep.Operations()) || len(s.ranks) != 3 || s.rate != "1gbit" {
		t.Errorf("%v: %+v", err, s)
	}
}

func TestParse(t *testing.T) {
	p, err := parse("a warning\npoint bcast 8 1.5\npoint of view\npoint beside.p90 8 3\n")
	if err != nil || !slices.Equal(p, []point{{"bcast", 8, 1.5}, {"beside.p90", 8, 3}}) {
		t.Errorf("%v: %v", err, p)
	}
	for _, line := range []string{"point bcast 8 many", "point bcast x 1", "point bcast 8 0"} {
		if p, err := parse("point bcast 4 1\n" + line + "\n"); err == nil || len(p) != 1 {
			t.Errorf("%s: %v, %v", line, p, err)
		}
	}
}

// Mixed sizes are others in each round, and the same in all modes of one.
func TestOrder(t *testing.T) {
	sizes := func() []int { return sweep.Between(1, 1<<20, true) }
	m := &measurement{settings: settings{order: mixed}, report: &sweep.Report{}}
	a, b := m.inOrder(sizes()), m.inOrder(sizes())
	m.report.Rounds = 1
	c := m.inOrder(sizes())
	if !slices.Equal(a, b) || slices.Equal(a, c) || slices.IsSorted(a) {
		t.Error(a, b, c)
	}
	m.order = down
	if d := m.inOrder(sizes()); d[0] != 1<<20 || d[len(d)-1] != 1 {
		t.Error(d)
	}
}

// Each operation has a job of its own, or all are in one but for threads; one that has none of the
// sizes is in none.
func TestJobs(t *testing.T) {
	s, err := parseFlags(strings.Fields("--program p --on bcast|threads|barrier|beside --sizes 4,128K"))
	if err != nil {
		t.Fatal(err)
	}
	m := &measurement{settings: s, report: &sweep.Report{}}
	if jobs := m.jobs(); len(jobs) != 3 || jobs[0][0].operation != "threads" || !slices.Equal(jobs[0][0].sizes, []int{4}) {
		t.Errorf("%v", jobs)
	}
	m.together = true
	if jobs := m.jobs(); len(jobs) != 2 || len(jobs[0]) != 1 || len(jobs[1]) != 2 || !slices.Equal(jobs[1][0].sizes, []int{0}) {
		t.Errorf("%v", jobs)
	}
}
