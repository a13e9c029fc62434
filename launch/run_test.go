package launch

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"testing"

	"github.com/leidenzipper/zipper/launch/spec"
)

// TestBoxesOfGoodClustersStayInTheOutput checks that framed messages of the launcher of a cluster
// that ended well stay in the output, also when another cluster fails, because they are about an
// mpirun that the program has started. The framed messages of the failed cluster are in the
// outcome.
func TestBoxesOfGoodClustersStayInTheOutput(t *testing.T) {
	const box = "--------------------------------------------------------------------------\n" +
		"mpirun noticed that process rank 0 with PID 7 on node %s exited on signal 9 (Killed).\n" +
		"--------------------------------------------------------------------------\n"
	boxOf := func(host string) string { return fmt.Sprintf(box, host) }
	rsh := fake(t, fmt.Sprintf("printf -- '%s' \"$1\" >&2\n[ $1 = good ]", box))
	for _, c := range []struct {
		hosts             []string
		prints, inOutcome string
		status            int
	}{
		{[]string{"good"}, boxOf("good"), "", 0},
		{[]string{"bad"}, "", boxOf("bad"), 1},
		{[]string{"good", "bad"}, boxOf("good"), boxOf("bad"), 1},
	} {
		job := spec.Job{Program: []string{"p"}, Rsh: []string{rsh},
			Zippers: []spec.Zipper{{Address: "127.0.0.1:1"}}}
		for _, host := range c.hosts {
			job.Clusters = append(job.Clusters, spec.Cluster{Name: host, Ranks: 1, Launcher: "ssh", Login: host})
		}
		var errs bytes.Buffer
		o, err := Run(context.Background(), &job, Options{Stdout: &bytes.Buffer{}, Stderr: &errs})
		if err != nil || o.Status != c.status || errs.String() != c.prints || o.Launcher != c.inOutcome {
			t.Errorf("%q: status %d (%v), prints\n%sand has in the outcome\n%s", c.hosts, o.Status, err, &errs, o.Launcher)
		}
	}
}

// TestClustersOfOneHostShareFiles checks that clusters that are all on this host share its file
// system, unless the user has named the directories that they share.
func TestClustersOfOneHostShareFiles(t *testing.T) {
	for _, v := range []string{"SLURM_JOB_ID", "SLURM_JOB_NODELIST", "PBS_NODEFILE", "LSB_HOSTS", "PE_HOSTFILE"} {
		t.Setenv(v, "")
	}
	declared := map[string]string{varSharedFS: "/scratch"}
	here := func() *runner { return &runner{Half: Half{Env: map[string]string{"A": "1"}}} }
	for name, c := range map[string]struct {
		environment map[string]string
		other       func(r *runner)
		want        bool
	}{
		"here":                        {nil, func(*runner) {}, true},
		"another login":               {nil, func(r *runner) { r.rsh = []string{"ssh", "x"} }, false},
		"other hosts":                 {nil, func(r *runner) { r.Cluster.Hosts = "hosts" }, false},
		"a group of Slurm's":          {nil, func(r *runner) { r.Cluster.Group = "1" }, false},
		"declared in the environment": {declared, func(*runner) {}, false},
		"declared for the job":        {nil, func(r *runner) { r.Env = declared }, false},
		"declared for the cluster":    {nil, func(r *runner) { r.Cluster = spec.Cluster{Env: declared} }, false},
		"declared as none":            {map[string]string{varSharedFS: ""}, func(*runner) {}, false},
	} {
		halves := []*runner{here(), here()}
		job := maps.Clone(halves[0].Env)
		c.other(halves[1])
		shareFiles(halves, func(k string) (string, bool) { v, ok := c.environment[k]; return v, ok })
		got, ok := halves[0].Env[varSharedFS]
		if ok != c.want || c.want && (got != "/" || halves[1].Env[varSharedFS] != "/" || halves[0].Env["A"] != job["A"]) {
			t.Errorf("%s: it is %q (%v), want it: %v", name, got, ok, c.want)
		}
	}
}
