package launch

import (
	"bytes"
	"context"
	"strings"
	"syscall"
	"testing"
)

func TestDescribeStatus(t *testing.T) {
	for status, want := range map[int]string{3: "exit status 3", 139: "exit status 139 (SIGSEGV)", 255: "exit status 255"} {
		if got := DescribeStatus(status); got != want {
			t.Errorf("%d: %q, want %q", status, got, want)
		}
	}
	if got := SignalName(syscall.SIGTERM); got != "SIGTERM" {
		t.Errorf("got %q", got)
	}
}

// TestHydraStatus: MPICH's launcher exits with 9 for kill -9 and for exit(9); its banner tells which.
func TestHydraStatus(t *testing.T) {
	const banner = `echo 'YOUR APPLICATION TERMINATED WITH THE EXIT STRING: Killed (signal 9)'`
	for _, c := range []struct {
		mpi    MPI
		script string
		want   int
	}{
		{MPICH, banner + "; exit 9", 128 + 9},
		{MPICH, banner + "; exit 11", 128 + 9}, // with another that ended with 2
		{MPICH, banner + "; exit 3", 3},
		{MPICH, "exit 9", 9},
		{OpenMPI, banner + "; exit 9", 9},
	} {
		h := testHalf(t, c.script)
		h.Cluster.MPI = c.mpi
		var out, errs bytes.Buffer
		if status, err := h.Run(context.Background(), nil, &out, &errs); status != c.want || err != nil {
			t.Errorf("%s, %s: status %d (%v), want %d", c.mpi, c.script, status, err, c.want)
		}
		if strings.Contains(c.script, "echo") != strings.HasPrefix(out.String(), "YOUR APPLICATION") {
			t.Errorf("%s: printed %q", c.script, &out)
		}
	}
}

func TestReason(t *testing.T) {
	lost := View{Ended: true, Started: true, Code: 1, Reason: "virtual rank 2 is lost"}
	for name, c := range map[string]struct {
		relay Relay
		ended []Ended
		want  string
	}{
		"lost":         {viewed{v: lost}, []Ended{{Cluster: "a", Status: 1}, {Cluster: "b", Status: 139}}, "virtual rank 2 is lost; cluster b ended with exit status 139 (SIGSEGV)"},
		"abort":        {viewed{v: View{Ended: true, Started: true, Code: 42, Reason: "MPI_Abort"}}, []Ended{{Cluster: "a", Status: 42}, {Cluster: "b", Status: 42}}, "MPI_Abort"},
		"no forwarder": {nil, []Ended{{Cluster: "a", Status: 1}, {Cluster: "b", Status: 1}}, "cluster a ended with exit status 1"},
		"refused": {nil, []Ended{{Cluster: "a", Status: 1, said: "wrong secret"}, {Cluster: "b", Status: 1}},
			"cluster a ended with exit status 1: wrong secret"},
		"a program's own":  {viewed{v: View{Ended: true, Started: true, OK: true}}, []Ended{{Cluster: "a"}, {Cluster: "b", Status: 3}}, "cluster b ended with exit status 3"},
		"nothing happened": {nil, []Ended{{Cluster: "a"}, {Cluster: "b"}}, ""},
	} {
		w := waiter{job: &Job{ID: "j"}, relay: c.relay, stop: func(error) {}}
		for _, e := range c.ended {
			w.ended(e)
		}
		w.close()
		status, err := w.verdict()
		reason := ""
		if c.relay != nil {
			reason = c.relay.View("j").Reason
		}
		if got := w.explain(status, reason); got != c.want || err != nil {
			t.Errorf("%s: %q (%v), want %q", name, got, err, c.want)
		}
	}
}

// viewed is a forwarder that sees one thing.
type viewed struct {
	Relay
	v View
}

func (v viewed) View(string) View { return v.v }
