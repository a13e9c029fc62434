package spec

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestSettingsOfOneHostNeedOneHost checks that a batch job over several hosts gets no setting that
// holds for one host only.
func TestSettingsOfOneHostNeedOneHost(t *testing.T) {
	self, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	file := func(lines ...string) string {
		name := filepath.Join(t.TempDir(), "nodes")
		if err := os.WriteFile(name, []byte(strings.Join(lines, "\n")+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		return name
	}
	for _, c := range []struct {
		name, value string
		want        bool
	}{
		{"HOME", "/root", false},
		{"SLURM_JOB_NODELIST", self, false},
		{"SLURM_JOB_NODELIST", "node7", true}, // salloc leaves the shell on the login node
		{"SLURM_JOB_NODELIST", self + ",node7", true},
		{"SLURM_JOB_NODELIST", "node[1,3-4]", true},
		{"PBS_NODEFILE", file(self, self), false},
		{"PBS_NODEFILE", file(self+".cluster.example", "node7.cluster.example"), true},
		{"PE_HOSTFILE", file(self + " 4 all.q UNDEFINED"), false},
		{"PE_HOSTFILE", file(self+" 4 all.q UNDEFINED", "node7 4 all.q UNDEFINED"), true},
		{"LSB_MCPU_HOSTS", self + " 4", false},
		{"LSB_MCPU_HOSTS", self + " 4 node7 4", true},
	} {
		get := func(k string) string { return map[string]string{c.name: c.value}[k] }
		if got := spread(get); got != c.want {
			t.Errorf("%s=%s: %v, want %v", c.name, c.value, got, c.want)
		}
	}
}
