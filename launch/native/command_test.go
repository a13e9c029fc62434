package native

import (
	"slices"
	"strings"
	"testing"

	"github.com/leidenzipper/zipper/launch/spec"
)

func TestNativeArguments(t *testing.T) {
	n := Command{MPI: spec.OpenMPI, Ranks: 3, Here: true, Tag: true, Extra: []string{"--mca", "a", "b"},
		Env: map[string]string{"K": "secret"}, Words: []string{"p", "x"}}
	a := n.Args()
	if got := strings.Join(a, " "); !strings.Contains(got, "--oversubscribe --bind-to none") ||
		!strings.Contains(got, "--tag-output") || !strings.Contains(got, "-x K ") || strings.Contains(got, "secret") ||
		!strings.HasSuffix(got, "--mca a b -n 3 p x") {
		t.Errorf("Open MPI Here: %s", got)
	}
	n.Hosts, n.Here = "h", false
	if got := strings.Join(n.Args(), " "); !strings.Contains(got, "--hostfile h") ||
		strings.Contains(got, "--bind-to") {
		t.Errorf("Open MPI on Hosts: %s", got)
	}
	n.Session = "dir"
	for _, prrte := range []bool{false, true} {
		n.PRRTE = prrte
		if e := n.needs(func(string) string { return "" }); slices.Contains(e, "PRTE_MCA_prte_tmpdir_base=dir") != prrte ||
			slices.Contains(e, "OMPI_MCA_orte_tmpdir_base=dir") == prrte {
			t.Errorf("Open MPI's environment, by PRRTE %v: %v", prrte, e)
		}
	}
	n.InOrder = true
	if got := strings.Join(n.Args(), " "); !strings.Contains(got, "--hostfile h --map-by seq ") {
		t.Errorf("Open MPI, a host for each rank: %s", got)
	}
	n.MPI = spec.MPICH
	if got := strings.Join(n.Args(), " "); got != "-f h -prepend-rank --mca a b -n 3 p x" {
		t.Errorf("MPICH on Hosts: %s", got)
	}
	n.Hosts, n.Here = "", true
	if e := n.needs(func(string) string { return "" }); !slices.Contains(e, "UCX_TLS=self,posix,sysv,tcp") {
		t.Errorf("MPICH's environment: %v", e)
	}
	if e := n.needs(func(string) string { return "mine" }); len(e) != 0 {
		t.Errorf("the user's settings are overridden: %v", e)
	}
}

// TestUCXWindowsAreLeftOutOnOneHost checks that since Open MPI 5 osc/ucx is left out where all
// ranks are on this host.
func TestUCXWindowsAreLeftOutOnOneHost(t *testing.T) {
	for _, n := range []Command{
		{MPI: spec.OpenMPI, PRRTE: true, Here: true},
		{MPI: spec.OpenMPI, PRRTE: true},
		{MPI: spec.OpenMPI, Here: true},
	} {
		for user, want := range map[string]bool{"": n.PRRTE && n.Here, "rdma": false} {
			e := n.needs(func(k string) string { return map[string]string{"OMPI_MCA_osc": user}[k] })
			if slices.Contains(e, "OMPI_MCA_osc=^ucx") != want {
				t.Errorf("here %v, by PRRTE %v, the user says %q: %v", n.Here, n.PRRTE, user, e)
			}
		}
	}
}

// TestSeveralHostsGetNoSettingsOfOne checks that over several hosts there is no setting that holds
// for one host only.
func TestSeveralHostsGetNoSettingsOfOne(t *testing.T) {
	none := func(string) string { return "" }
	for _, m := range []spec.MPI{spec.OpenMPI, spec.MPICH} {
		n := Command{MPI: m, Ranks: 2}
		for _, s := range append(n.Args(), n.needs(none)...) {
			if slices.ContainsFunc([]string{"oversubscribe", "bind-to", "HYDRA_IFACE", "UCX_TLS", "yield"},
				func(w string) bool { return strings.Contains(s, w) }) {
				t.Errorf("%s over several hosts: %s", m, s)
			}
		}
	}
}

// TestStepsShareNodesInAnAllocation checks that in an allocation the launchers' steps share the
// nodes, unless the user has decided otherwise.
func TestStepsShareNodesInAnAllocation(t *testing.T) {
	for _, m := range []spec.MPI{spec.OpenMPI, spec.MPICH} {
		for overlap, want := range map[string]bool{"": true, "0": false} {
			env := map[string]string{"SLURM_JOB_ID": "7", "SLURM_OVERLAP": overlap}
			needs := Command{MPI: m, Ranks: 2}.needs(func(k string) string { return env[k] })
			if slices.Contains(needs, "SLURM_OVERLAP=1") != want {
				t.Errorf("%s, SLURM_OVERLAP=%s: %v", m, overlap, needs)
			}
		}
	}
}
