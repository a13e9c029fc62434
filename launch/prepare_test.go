package launch

import (
	"maps"
	"testing"

	"github.com/leidenzipper/zipper/launch/spec"
)

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
