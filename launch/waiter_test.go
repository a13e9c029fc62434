package launch

import (
	"slices"
	"testing"

	"github.com/leidenzipper/zipper/launch/spec"
)

func TestReasonOfFailure(t *testing.T) {
	lost := View{Ended: true, Started: true, Code: 1, Reason: "virtual rank 2 is lost"}
	for name, c := range map[string]struct {
		fwd   Forwarder
		ended []Ended
		want  string
	}{
		"lost": {viewed{v: lost}, []Ended{{Cluster: "a", Status: 1}, {Cluster: "b", Status: 139}},
			"virtual rank 2 is lost; cluster b ended with exit status 139 (SIGSEGV)"},
		"abort": {viewed{v: View{Ended: true, Started: true, Code: 42, Reason: "MPI_Abort"}},
			[]Ended{{Cluster: "a", Status: 42}, {Cluster: "b", Status: 42}}, "MPI_Abort"},
		"no forwarder": {nil, []Ended{{Cluster: "a", Status: 1}, {Cluster: "b", Status: 1}},
			"cluster a ended with exit status 1"},
		"refused": {nil, []Ended{{Cluster: "a", Status: 1, complaint: "wrong secret"}, {Cluster: "b", Status: 1}},
			"cluster a ended with exit status 1: wrong secret"},
		"a program's own": {viewed{v: View{Ended: true, Started: true, OK: true}},
			[]Ended{{Cluster: "a"}, {Cluster: "b", Status: 3}}, "cluster b ended with exit status 3"},
		"nothing happened": {nil, []Ended{{Cluster: "a"}, {Cluster: "b"}}, ""},
	} {
		w := waiter{job: &spec.Job{ID: "j"}, fwd: c.fwd, stop: func(error) {}}
		for _, e := range c.ended {
			w.ended(e)
		}
		w.close()
		status, err := w.verdict()
		reason := ""
		if c.fwd != nil {
			reason = c.fwd.View().Reason
		}
		if got := w.explain(status, reason); got != c.want || err != nil {
			t.Errorf("%s: %q (%v), want %q", name, got, err, c.want)
		}
	}
}

// TestFirstFailedClusterGivesTheBoxes checks that the boxes are those of the cluster that failed
// first if no cluster ended with the job's status.
func TestFirstFailedClusterGivesTheBoxes(t *testing.T) {
	for code, want := range map[int]string{42: "b's", 3: "c's", 0: "c's"} {
		w := waiter{job: &spec.Job{ID: "j"}, fwd: viewed{v: View{Ended: true, Started: true, Code: code}},
			stop: func(error) {}}
		for _, e := range []Ended{{Cluster: "a", boxes: "a's"}, {Cluster: "b", Status: 1, boxes: "b's"},
			{Cluster: "c", Status: 3, boxes: "c's"}} {
			w.ended(e)
		}
		w.close()
		status, _ := w.verdict()
		if got := w.boxes(status); got != want {
			t.Errorf("status %d: %q, want %q", status, got, want)
		}
	}
}

// TestForwarderHearsOfEnds checks that the forwarder of a run learns at once of every half that has
// ended, so that it waits for none of its ranks.
func TestForwarderHearsOfEnds(t *testing.T) {
	var ended []string
	w := waiter{job: &spec.Job{ID: "j"}, fwd: viewed{v: View{Started: true}, ends: &ended}, stop: func(error) {}}
	for _, e := range []Ended{{Cluster: "a"}, {Cluster: "c", Status: 3}, {Cluster: "b", Status: 1}} {
		w.ended(e)
	}
	w.close()
	if want := []string{"a", "c", "b"}; !slices.Equal(ended, want) {
		t.Errorf("it hears of %q, want %q", ended, want)
	}
}

// viewed is a forwarder with a constant view, which notes the clusters that have ended.
type viewed struct {
	Forwarder
	v    View
	ends *[]string
}

func (v viewed) View() View { return v.v }

func (v viewed) ClusterEnded(cluster string) {
	if v.ends != nil {
		*v.ends = append(*v.ends, cluster)
	}
}
