package engine

import (
	"testing"
	"time"

	"github.com/leidenzipper/zipper/wire"
)

func TestWaitIsReportedAfterTheLimit(t *testing.T) {
	const limit = 10 * time.Second
	recv := Waits{Call: "MPI_Recv", Begun: 3, Ended: 2}
	for _, c := range []struct {
		what     string
		then     Waits
		segments uint64
		want     string
	}{
		{"the same wait", recv, 5, "MPI_Recv"},
		{"another wait", Waits{"MPI_Recv", 4, 3}, 5, ""},
		{"no wait any more", Waits{Begun: 3, Ended: 3}, 5, ""},
		{"a segment has arrived", recv, 6, ""},
	} {
		s := standstill{limit: limit}
		if got := s.look(time.Second, recv, 5); got != "" {
			t.Errorf("%s: at first %q", c.what, got)
		}
		if got := s.look(limit, recv, 5); got != "" {
			t.Errorf("%s: before the limit %q", c.what, got)
		}
		if got := s.look(time.Second+limit, c.then, c.segments); got != c.want {
			t.Errorf("%s: %q, want %q", c.what, got, c.want)
		}
	}
}

func TestProgramThatComputesIsNotReported(t *testing.T) {
	s := standstill{limit: time.Second}
	for now := range 100 {
		if got := s.look(time.Duration(now)*time.Second, Waits{Begun: 7, Ended: 7}, 0); got != "" {
			t.Fatalf("%q", got)
		}
	}
}

func TestWaitForAnotherJobIsNotReported(t *testing.T) {
	s := standstill{limit: time.Second}
	accept := Waits{Call: "MPI_Comm_accept", Begun: 1}
	s.look(0, accept, 0)
	if got := s.look(time.Hour, accept, 0); got != "" {
		t.Errorf("%q", got)
	}
}

func TestStandstillNeedsTheReportsOfAll(t *testing.T) {
	s := standstill{limit: 10 * time.Second}
	check := func(at time.Duration, want bool) {
		t.Helper()
		if got := s.all(at, 2); got != want {
			t.Errorf("at %v: %v, want %v", at, got, want)
		}
	}
	s.hear(1, "MPI_Recv")
	check(10*time.Second, false)
	s.hear(2, "MPI_Barrier")
	check(11*time.Second, false)
	s.hear(1, "") // its wait is over
	check(12*time.Second, false)
	check(20*time.Second, false)
	s.hear(1, "MPI_Barrier")
	check(21*time.Second, false)
	check(21900*time.Millisecond, false)
	check(22*time.Second, true)
}

func TestClustersWaitNamesEachFunction(t *testing.T) {
	w := World{Clusters: []wire.Cluster{{Name: "a", Size: 3}, {Name: "b", Size: 2}}}
	calls := []string{"MPI_Recv", "MPI_Barrier", "MPI_Recv", "MPI_Wait", "MPI_Wait"}
	got := clustersWait(&w, func(rank int) string { return calls[rank] })
	const want = "cluster a waits in MPI_Barrier (1 of 3), MPI_Recv (2 of 3); cluster b waits in MPI_Wait"
	if got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestReportOfNoFunctionIsNotPrinted(t *testing.T) {
	var s standstill
	s.hear(1, "\x1b[2J")
	if got := s.calls[1]; got != "an unknown function" {
		t.Errorf("%q", got)
	}
}
