package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/leidenzipper/zipper/internal/traffic/rankfile"
)

// woven has the clusters' ranks in another order than that of virtual ranks: rank 0 of
// MPI_COMM_WORLD is in b.
var woven = struct {
	clusters []Cluster
	flags    []string
}{[]Cluster{A(2, OpenMPI), B(2, MPICH)}, []string{"--order", "b,a,b,a"}}

// TestOrder checks that programs print the same whatever the order of ranks.
func TestOrder(t *testing.T) {
	New(t)
	files := []string{"p2p_modes", "p2p_wildcard", "coll_basic", "coll_vector", "comm_make", "topology", "rma_fence", "pairs"}
	if long() {
		files = append(files, "p2p_probe", "coll_ops", "intercomm", "group_algebra", "attributes")
	}
	for _, file := range files {
		t.Run(file, func(t *testing.T) {
			b := New(t)
			path := compileFor(b, woven.clusters, "c/"+file+".c")
			b.matchesNative(Job{Clusters: woven.clusters, Flags: woven.flags}, path)
		})
	}
}

// TestOrderOfStreams checks that standard input, tags and the summary use the ranks of
// MPI_COMM_WORLD.
func TestOrderOfStreams(t *testing.T) {
	b := New(t)
	r := b.OK(b.Zipped(Job{Clusters: woven.clusters, Stdin: []byte("one\ntwo\n"),
		Flags: append([]string{"--tag", "--stats"}, woven.flags...)}, bad(b), "stdin"))
	if r.Stdout != "[0] others read 0 bytes\n[0] one\n[0] two\n" {
		t.Errorf("standard input:\n%v", r)
	}
	for _, want := range []string{"virtual ranks 0 to 1, in MPI_COMM_WORLD 1, 3\n",
		"virtual ranks 2 to 3, in MPI_COMM_WORLD 0, 2\n"} {
		if !strings.Contains(r.Stderr, want) {
			t.Errorf("the summary does not say %q:\n%v", want, r)
		}
	}
	r = b.OK(b.Zipped(Job{Clusters: woven.clusters, Flags: append([]string{"--tag"}, woven.flags...)}, bad(b),
		"finish"))
	for rank := range 4 {
		if want := fmt.Sprintf("[%d] finished %d of 4\n", rank, rank); !strings.Contains(r.Stdout, want) {
			t.Errorf("no %q:\n%v", want, r)
		}
	}
}

// TestOrdersDiffer checks that halves with different orders do not start.
func TestOrdersDiffer(t *testing.T) {
	b := New(t)
	f := b.StartForwarder("--status", "none")
	prog := strings.Replace(bad(b), "{mpi}", OpenMPI, 1)
	var procs []*Proc
	id := JobID(t)
	for cluster, order := range map[string]string{"a": "b,a,b,a", "b": "a,b,a,b"} {
		procs = append(procs, b.Start(nil, []string{"ZIPPER_JOB=" + id, "ZIPPER_SECRET=" + SecretOf("s"),
			"ZIPPER_LAYOUT=a=2,b=2",
			"ZIPPER_FORWARDERS=" + f.Addr},
			b.Zipper, "join", "--cluster", cluster, "--order", order, "--mpi", OpenMPI, "--", prog, "finish"))
	}
	stderr := ""
	for _, p := range procs {
		r := p.Wait()
		stderr += r.Stderr
		if r.Status == 0 {
			t.Errorf("it ran:\n%v", r)
		}
	}
	if !strings.Contains(stderr, "ZIPPER_ORDER=") || !strings.Contains(stderr, "must be equal in all clusters") {
		t.Errorf("no reason is given:\n%s", stderr)
	}
	b.NothingLeft(id)
}

// pairsPlan writes a platform whose clusters have these hosts, two each, and the plan for the
// traffic of pairs.c. It returns the plan's name and the text beside it.
func pairsPlan(b *Bed, hosts [2][]string) (plan string) {
	b.T.Helper()
	dir := b.T.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			b.T.Fatal(err)
		}
		return path
	}
	platform := "clusters:\n"
	for i, name := range []string{"a", "b"} {
		platform += fmt.Sprintf("  - {name: %s, hosts: [%s], cores: %d, nic: 1gbit}\n", name,
			strings.Join(hosts[i], ", "), 2/len(hosts[i]))
	}
	platform += "zippers:\n  - {name: z, ports: {a: 1gbit, b: 1gbit}}\n"
	trace := "zipper-trace 1\njob pairs\ncluster a 2\ncluster b 2\ntotal 0 2 10 10485760\ntotal 2 0 10 10485760\ntotal 1 3 10 10485760\ntotal 3 1 10 10485760\nend 7\n"
	plan = filepath.Join(dir, "ranks")
	r := b.OK(b.Run(nil, nil, b.Zipper, "plan", "--output", plan, write("platform.yaml", platform),
		write("pairs.trace", trace)))
	if !strings.Contains(r.Stdout, "zipper run --plan "+plan) {
		b.T.Errorf("plan does not say how to run:\n%v", r)
	}
	return plan
}

// thisHost is this host by two names: Open MPI's sequential mapper knows it by its own name only.
func thisHost(b *Bed) [2][]string {
	b.T.Helper()
	name, err := os.Hostname()
	if err != nil {
		b.T.Fatal(err)
	}
	return [2][]string{{name}, {"localhost"}}
}

// TestLaunchersTakePlans checks that the launchers accept the files of a plan: a rankfile of Open
// MPI, which binds each rank to its slot, and a list of hosts of MPICH.
func TestLaunchersTakePlans(t *testing.T) {
	b := New(t)
	plan := pairsPlan(b, thisHost(b))
	args := []string{"mpirun.openmpi", "--mca", "plm_rsh_agent", "true", "--rankfile", plan + ".a.rankfile", "-n", "2"}
	if os.Geteuid() == 0 {
		args = append(args, "--allow-run-as-root")
	}
	r := b.OK(b.Run(nil, nil, append(args, "sh", "-c",
		`echo rank $OMPI_COMM_WORLD_RANK $(grep Cpus_allowed_list /proc/self/status)`)...))
	cpus := map[string]bool{}
	for line := range strings.Lines(r.Stdout) {
		f := strings.Fields(line)
		if len(f) != 4 || strings.ContainsAny(f[3], ",-") {
			t.Fatalf("not bound to one core:\n%v", r)
		}
		cpus[f[3]] = true
	}
	if len(cpus) != 2 {
		t.Errorf("two ranks are bound to %d cores:\n%v", len(cpus), r)
	}
	r = b.OK(b.Run(nil, nil, "mpirun.mpich", "-f", plan+".b.hosts", "-n", "2", "sh", "-c",
		"echo rank $PMI_RANK of $PMI_SIZE"))
	if got := lines(r.Stdout, nil); !slices.Equal(got, []string{"rank 0 of 2", "rank 1 of 2"}) {
		t.Errorf("MPICH:\n%v", r)
	}
}

// planned runs pairs.c by a plan. It checks that every rank is on the host of the plan, if hosts
// can be distinguished, and that only the ends of the program cross.
func planned(b *Bed, env []string, plan string, apart bool, args ...string) {
	b.T.Helper()
	f, err := os.Open(plan)
	if err != nil {
		b.T.Fatal(err)
	}
	defer f.Close()
	places, err := rankfile.Read(f)
	if err != nil {
		b.T.Fatal(err)
	}
	r := b.OK(b.Run(nil, env, slices.Concat([]string{b.Zipper, "run", "--plan", plan, "--json"}, args,
		[]string{"--", compileFor(b, woven.clusters, "c/pairs.c"), "where"})...))
	for rank, p := range places {
		if want := fmt.Sprintf("%d: on %s\n", rank, p.Host); apart && !strings.Contains(r.Stdout, want) {
			b.T.Errorf("rank %d is not on %s:\n%v", rank, p.Host, r)
		}
	}
	var out struct {
		Clusters []struct {
			Cluster string
			World   []int `json:"world_ranks"`
		}
		Traffic []struct{ Bytes int64 }
	}
	if b.Summary(r, &out); len(out.Clusters) != 2 {
		b.T.Fatal(r)
	}
	for _, c := range out.Clusters {
		for _, rank := range c.World {
			if places[rank].Cluster != c.Cluster {
				b.T.Errorf("rank %d is in cluster %s, planned in %s", rank, c.Cluster, places[rank].Cluster)
			}
		}
		if len(c.World) != 2 {
			b.T.Errorf("cluster %s has the ranks %v", c.Cluster, c.World)
		}
	}
	if !apart && len(out.Traffic) != 2 {
		b.T.Errorf("the traffic between clusters is not known:\n%v", r)
	}
	for _, x := range out.Traffic {
		if x.Bytes > 10_000 {
			b.T.Errorf("%d bytes crossed, though all pairs are together", x.Bytes)
		}
	}
}

// TestPlannedJob runs a planned job on this host. Cluster by cluster all of its 40 MB would cross.
func TestPlannedJob(t *testing.T) {
	b := New(t)
	plan := pairsPlan(b, thisHost(b))
	file := filepath.Join(t.TempDir(), "job.yaml")
	text := "clusters:\n- {name: a, ranks: 2, mpi: openmpi, args: [--bind-to, none], env: {OMPI_MCA_mpi_yield_when_idle: \"1\", OMPI_MCA_plm_rsh_agent: \"true\"}}\n" +
		"- {name: b, ranks: 2, mpi: mpich, env: {UCX_TLS: \"self,posix,sysv,tcp\"}}\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	planned(b, nil, plan, false, "--file", file)
	prog := compileFor(b, woven.clusters, "c/pairs.c")
	for want, args := range map[string][]string{
		"--plan and --order both":                 {"--plan", plan, "--order", "a,b,a,b"},
		"give the clusters the plan's numbers":    {"--plan", plan, "--cluster", "a=3", "--cluster", "b=2"},
		"without a plan or an order":              {"--plan", plan, "--record", filepath.Join(t.TempDir(), "trace")},
		"plan " + plan + ".b.hosts: line 1: want": {"--plan", plan + ".b.hosts"},
	} {
		r := b.Run(nil, nil, slices.Concat([]string{b.Zipper, "run"}, args, []string{"--", prog})...)
		if r.Status == 0 || !strings.Contains(r.Stderr, want) {
			t.Errorf("no error with %q:\n%v", want, r)
		}
	}
}
