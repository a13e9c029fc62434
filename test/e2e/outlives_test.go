package e2e

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/leidenzipper/zipper/launch"
)

// TestRunOutlivesCluster checks that zipper run does not end the other halves when a cluster is
// lost in a job that goes on: the exit status is that of the survivors, and the outcome names what
// was lost, when and why. The forwarder is one of the run, or another one.
func TestRunOutlivesCluster(t *testing.T) {
	for _, c := range []struct {
		name     string
		clusters []Cluster
		status   string
		outside  bool
		want     int
	}{
		{"mixed", []Cluster{A(2, OpenMPI), B(2, MPICH)}, "0", false, 0},
		{"mpich loses openmpi", []Cluster{A(1, MPICH), B(2, OpenMPI)}, "0", false, 0},
		{"survivors fail", []Cluster{A(1, OpenMPI), B(1, OpenMPI)}, "4", false, 4},
		{"another forwarder", []Cluster{A(2, MPICH), B(1, MPICH)}, "0", true, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := New(t)
			path := compileFor(b, c.clusters, "c/survivor.c")
			j := Job{Clusters: c.clusters, Flags: []string{"--on-loss", "continue", "--json"}}
			if c.outside {
				j.Flags = append(j.Flags, "--zipper", b.StartForwarder().Addr)
			}
			first := map[int]string{1: "1", 2: "2"}[c.clusters[0].Ranks]
			r := b.Zipped(j, path, first, c.status)
			if r.Status != c.want || strings.Count(r.Stdout, "goes on: 1") != c.clusters[0].Ranks {
				t.Fatalf("want status %d: %s", c.want, r)
			}
			var out launch.Outcome
			for line := range strings.Lines(r.Stderr) {
				if strings.HasPrefix(line, "{") {
					if err := json.Unmarshal([]byte(line), &out); err != nil {
						t.Fatal(err)
					}
				}
			}
			if c.clusters[1].MPI == MPICH && len(out.Lost) == 1 &&
				!strings.Contains(out.Lost[0].Reason, "exit status") {
				b.skipIfKillsAreHidden()
			}
			if len(out.Lost) != 1 || out.Lost[0].Cluster != "b" || out.Lost[0].Seconds <= 0 ||
				!strings.Contains(out.Lost[0].Reason, "SIGKILL") || out.Status != c.want {
				t.Errorf("lost %+v: %s", out.Lost, r)
			}
			if !strings.Contains(r.Stderr, "cluster b was lost after") {
				t.Errorf("no line says what was lost: %s", r)
			}
		})
	}
}

// TestRunEndsWithCluster checks that a job without that setting ends with the cluster.
func TestRunEndsWithCluster(t *testing.T) {
	b := New(t)
	clusters := []Cluster{A(1, MPICH), B(1, MPICH)}
	path := compileFor(b, clusters, "c/survivor.c")
	if r := b.Zipped(Job{Clusters: clusters}, path, "1", "0"); r.Status != 137 || strings.Contains(r.Stdout, "goes on") {
		t.Errorf("want status 137: %s", r)
	}
}
