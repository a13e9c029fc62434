package engine

import (
	"testing"
	"time"

	"github.com/leidenzipper/zipper/internal/wire"
)

func TestWaitIsReportedAfterTheLimit(t *testing.T) {
	const limit = 10 * time.Second
	recv := Waits{Call: "MPI_Recv", Begun: 3, Ended: 2}
	for _, c := range []struct {
		what    string
		then    Waits
		arrived uint64
		want    string
	}{
		{"the same wait", recv, 5, "MPI_Recv"},
		{"another wait", Waits{"MPI_Recv", 4, 3}, 5, ""},
		{"no wait any more", Waits{Begun: 3, Ended: 3}, 5, ""},
		{"a message has arrived", recv, 6, ""},
	} {
		s := standstill{limit: limit}
		if got := s.look(time.Second, recv, 5); got != "" {
			t.Errorf("%s: at first %q", c.what, got)
		}
		if got := s.look(limit, recv, 5); got != "" {
			t.Errorf("%s: before the limit %q", c.what, got)
		}
		if got := s.look(time.Second+limit, c.then, c.arrived); got != c.want {
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

// standing makes a job of two clusters of one process each. Process i waits as waits[i] says at the
// time; warned has the warnings.
func standing(t *testing.T, limits Limits, waits [2]*Waits) (f *fabric, warned *[]string) {
	warned = new([]string)
	return newFabric(t, []int{1, 1}, limits, func(rank int, cfg *Config) {
		cfg.Warn = func(text string) { *warned = append(*warned, text) }
		if w := waits[rank]; w != nil {
			cfg.Waits = func() Waits { return *w }
		}
	}), warned
}

// tick has all processes look whether the job stands still, and delivers their reports.
func (f *fabric) tick(now time.Duration) {
	for _, e := range f.engines {
		e.lock()
		e.stands.tick(now)
		e.links.Flush()
		e.unlock()
	}
	f.settle()
}

func TestMessagesThatArriveAreNoStandstill(t *testing.T) {
	const size = 1000 // bytes, at most
	for _, c := range []struct {
		what   string
		limits Limits
	}{
		{"eager", Limits{Eager: size}},
		{"announced", Limits{Eager: -1}},
	} {
		t.Run(c.what, func(t *testing.T) {
			const limit = 10 * time.Second
			c.limits.Standstill = limit
			wait := Waits{Call: "MPI_Alltoall", Begun: 1}
			f, warned := standing(t, c.limits, [2]*Waits{&wait, &wait})
			comms := f.world(WorldContext)
			now, buf := time.Second, make([]byte, size)
			for range 10 {
				var cells [2]Cell
				if err := f.engines[1].Irecv(comms[1], KindCollective, buf, 0, 0, &cells[1]); err != nil {
					t.Fatal(err)
				}
				if err := f.engines[0].Isend(comms[0], KindCollective, make([]byte, size), 1, 0, false, &cells[0]); err != nil {
					t.Fatal(err)
				}
				f.settle()
				f.tick(now)
				now += limit * 3 / 4
			}
			if len(*warned) > 0 {
				t.Fatalf("while messages arrive: %q", *warned)
			}
			for range 3 { // to report, to hear all reports, and a tenth of the limit later
				now += limit
				f.tick(now)
			}
			if len(*warned) != 1 {
				t.Errorf("when nothing arrives: %q", *warned)
			}
		})
	}
}

// TestReportsUseUpNoCredit has process 0 compute, or serve a Go program, while the other one begins
// and ends many long waits.
func TestReportsUseUpNoCredit(t *testing.T) {
	const limit = time.Second
	computes := &Waits{}
	for _, first := range []*Waits{nil, computes} {
		wait := Waits{Call: "MPI_Recv"}
		f, warned := standing(t, Limits{Standstill: limit, EagerWindow: 1 << 10}, [2]*Waits{first, &wait})
		now := time.Second
		for range 1000 {
			wait.Begun++
			f.tick(now)
			now += limit
			f.tick(now) // reports the wait
			wait.Ended++
			f.tick(now) // reports its end
			f.tick(now) // reads that
			for rank, e := range f.engines {
				if got := e.p2p.Control().Outstanding(); got > 1-rank {
					t.Fatalf("process %d has %d operations of the control communicator", rank, got)
				}
				if e.presentActivity() != Idle {
					t.Fatalf("process %d keeps its program from blocking", rank)
				}
			}
		}
		if len(*warned) > 0 {
			t.Errorf("%q", *warned)
		}
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
	s.record(1, "MPI_Recv")
	check(10*time.Second, false)
	s.record(2, "MPI_Barrier")
	check(11*time.Second, false)
	s.record(1, "") // its wait is over
	check(12*time.Second, false)
	check(20*time.Second, false)
	s.record(1, "MPI_Barrier")
	check(21*time.Second, false)
	check(21900*time.Millisecond, false)
	check(22*time.Second, true)
}

func TestClustersWaitNamesEachFunction(t *testing.T) {
	w := World{Clusters: []wire.Cluster{{Name: "a", Size: 3}, {Name: "b", Size: 2}}}
	calls := []string{"MPI_Recv", "MPI_Barrier", "MPI_Recv", "MPI_Wait", "MPI_Wait"}
	got := describeWaits(&w, func(rank int) string { return calls[rank] })
	const want = "cluster a waits in MPI_Barrier (1 of 3), MPI_Recv (2 of 3); cluster b waits in MPI_Wait"
	if got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestReportOfNoFunctionIsNotPrinted(t *testing.T) {
	var s standstill
	s.record(1, "\x1b[2J")
	if got := s.calls[1]; got != "an unknown function" {
		t.Errorf("%q", got)
	}
}
