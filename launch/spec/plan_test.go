package spec

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/leidenzipper/zipper/internal/jobenv"
)

func TestUsePlan(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	plan := write("ranks", "# RANK HOST CLUSTER\n0 b1 b\n1 a1 a\n2 a1 a\n3 b2 b\n")
	write("ranks.a.hosts", "a1\na1\n")
	write("ranks.b.hosts", "b1\nb2\n")
	order := []jobenv.Cluster{{Name: "b", Size: 1}, {Name: "a", Size: 2}, {Name: "b", Size: 1}}
	var j Job
	if err := j.UsePlan(plan); err != nil || !reflect.DeepEqual(j.Order, order) ||
		!reflect.DeepEqual(j.Clusters, []Cluster{
			{Name: "b", Ranks: 2, Hosts: plan + ".b.hosts", InOrder: true},
			{Name: "a", Ranks: 2, Hosts: plan + ".a.hosts", InOrder: true}}) {
		t.Errorf("%+v, %v", j, err)
	}
	j = Job{Clusters: []Cluster{{Name: "a", Ranks: 2, Hosts: "mine"}, {Name: "b", Ranks: 2, MPI: MPICH}},
		Program: []string{"p"}}
	if err := j.UsePlan(plan); err != nil || j.Clusters[0].Hosts != "mine" || j.Clusters[0].InOrder ||
		j.Clusters[1].Hosts != plan+".b.hosts" || j.Clusters[1].MPI != MPICH {
		t.Errorf("%+v, %v", j, err)
	}
	if err := j.Normalize(); err != nil || !reflect.DeepEqual(j.Share("b").Order, order) {
		t.Errorf("%+v, %v", j, err)
	}
	for name, want := range map[string]string{
		filepath.Join(dir, "none"):         "no such file",
		write("empty", "# nothing\n"):      "no ranks",
		write("bad", "0 a1 a\n0 a2 a\n"):   "line 2: rank 0 is placed twice",
		write("old", "0 a1\n"):             "rank 0 has no cluster",
		write("alone", "0 a1 a\n1 b1 b\n"): "hosts of cluster a should be beside it",
		write("other", "0 a1 a\n1 a1 x\n"): "hosts of cluster a",
	} {
		var j Job
		if err := j.UsePlan(name); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", name, err, want)
		}
	}
	j = Job{Clusters: []Cluster{{Name: "a", Ranks: 1}, {Name: "b", Ranks: 2}}}
	if err := j.UsePlan(plan); err == nil || !strings.Contains(err.Error(), "2 ranks of cluster a, the job has 1") {
		t.Errorf("other numbers of ranks: %v", err)
	}
	j = Job{Program: []string{"p"}, Clusters: []Cluster{{Name: "a", Ranks: 1}, {Name: "b", Ranks: 1}},
		Order: []jobenv.Cluster{{Name: "a", Size: 1}, {Name: "b", Size: 1}}}
	if err := j.Normalize(); err != nil || j.Order != nil {
		t.Errorf("the usual order: %v, %v", j.Order, err)
	}
}
