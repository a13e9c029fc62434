package launch

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/leidenzipper/zipper/internal/jobenv"
	"github.com/leidenzipper/zipper/launch/spec"
)

// TestOutlivesClusters checks the status of a job that outlives clusters, which clusters are lost,
// and that a half which fails ends the others only if the job has failed, or has not begun.
func TestOutlivesClusters(t *testing.T) {
	begin := time.Unix(1e9, 0)
	lost := func(reason string, clusters ...string) viewed {
		v := View{Ended: true, Started: true, OK: reason == "", Reason: reason}
		if reason != "" {
			v.Code = 1
		}
		for i, c := range clusters {
			v.Lost = append(v.Lost, LostCluster{c, begin.Add(time.Duration(i+1) * time.Second), "cluster " + c + " is lost: why"})
		}
		return viewed{v: v}
	}
	for name, c := range map[string]struct {
		fwd   Forwarder
		ended []Ended
		want  string // status, lost clusters, error, and whether the others are ended
	}{
		"none": {lost(""), []Ended{{Cluster: "a"}, {Cluster: "b"}}, "0 [] <nil> false"},
		"one": {lost("", "b"), []Ended{{Cluster: "b", Status: 137}, {Cluster: "a"}},
			"0 [{b 1 why; cluster b ended with exit status 137 (SIGKILL)}] <nil> false"},
		"one, over a remote shell": {lost("", "b"), []Ended{{Cluster: "b", Status: 255, err: errors.New("ssh")}, {Cluster: "a"}},
			"0 [{b 1 why; cluster b ended with exit status 255}] <nil> false"},
		"one, and a survivor fails": {lost("", "b"), []Ended{{Cluster: "b", Status: 137}, {Cluster: "a", Status: 3}, {Cluster: "c"}},
			"3 [{b 1 why; cluster b ended with exit status 137 (SIGKILL)}] <nil> false"},
		"all": {lost("cluster a is lost: why", "b", "a"), []Ended{{Cluster: "b", Status: 137}, {Cluster: "a", Status: 4}},
			"137 [{b 1 why; cluster b ended with exit status 137 (SIGKILL)} {a 2 why; cluster a ended with exit status 4}] <nil> false"},
		"an abort": {viewed{v: View{Ended: true, Started: true, Code: 7, Reason: "MPI_Abort"}},
			[]Ended{{Cluster: "b", Status: 7}, {Cluster: "a", Status: 7}}, "7 [] <nil> false"},
		"before it began": {viewed{v: View{Known: true}}, []Ended{{Cluster: "b", Status: 137}, {Cluster: "a", Status: 1}},
			"137 [] <nil> true"},
		"no forwarder, one": {nil, []Ended{{Cluster: "b", Status: 137, Seconds: 5, complaint: "gone"}, {Cluster: "a"}},
			"0 [{b 5 it ended with exit status 137 (SIGKILL): gone}] <nil> false"},
		"no forwarder, ssh": {nil, []Ended{{Cluster: "b", Status: 255, Seconds: 5, err: errors.New("no login")}, {Cluster: "a"}},
			"0 [{b 5 no login}] <nil> false"},
		"no forwarder, all": {nil, []Ended{{Cluster: "b", Status: 3}, {Cluster: "a", Status: 1}}, "3 [] <nil> false"},
		"no forwarder, none begins": {nil, []Ended{{Cluster: "b", Status: 1, err: errors.New("no mpirun")}, {Cluster: "a", Status: 1}},
			"1 [] no mpirun false"},
	} {
		stopped := false
		w := waiter{job: &spec.Job{ID: "j", OnLoss: jobenv.LossContinues}, fwd: c.fwd, stop: func(error) { stopped = true }}
		for _, e := range c.ended {
			w.ended(e)
		}
		w.close()
		list := w.lost(begin)
		w.judge(list)
		status, err := w.verdict()
		if got := fmt.Sprint(status, list, err, stopped); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}
