package e2e

import (
	"strings"
	"testing"
)

// TestClassic checks that the classic protocol, though slow, has the native output.
func TestClassic(t *testing.T) {
	b := New(t)
	random := b.Compile(OpenMPI, "test/programs/c/random.c")
	clusters := []Cluster{A(2, OpenMPI), B(1, OpenMPI)}
	native := b.OK(b.Native(OpenMPI, 3, random, "6", "150"))
	b.Same(native, b.OK(b.Zipped(Job{Clusters: clusters, Flags: []string{"--protocol", "classic"}}, random, "6",
		"150")), nil)

	t.Run("a forwarder of its own", func(t *testing.T) {
		f := b.StartForwarder("--protocol", "classic")
		cg := b.Compile(OpenMPI, "examples/cg/cg.c")
		r := b.OK(b.Zipped(Job{Clusters: clusters, Flags: []string{"--protocol", "classic", "--zipper", f.Addr}}, cg,
			"48"))
		if !strings.Contains(r.Stdout, ": verified") {
			t.Errorf("not verified:\n%v", r)
		}
		b.Fails(b.Zipped(Job{Clusters: clusters, Flags: []string{"--zipper", f.Addr}}, cg, "48"), 1,
			"start both with the same --protocol")
	})
	b.Fails(b.Zipped(Job{Clusters: clusters, Flags: []string{"--protocol", "modern"}}, random, "6", "10"), 2,
		"want classic")
	b.Fails(b.Zipped(Job{Clusters: clusters, Flags: []string{"--protocol", "classic", "--zipper", "h1", "--zipper",
		"h2"}}, random, "6", "10"), 2, "one zipper")
}

// TestSettingsDiffer checks that settings which must be equal in all clusters are compared when the
// clusters join.
func TestSettingsDiffer(t *testing.T) {
	t.Parallel() // mostly waits for a time-out
	b := New(t)
	f := b.StartForwarder()
	prog := b.Compile(OpenMPI, "examples/cg/cg.c")
	id := JobID(t)
	half := func(cluster, collectives string) *Proc {
		return b.Start(nil, []string{"ZIPPER_SECRET=" + SecretOf("s"), "ZIPPER_COLLECTIVES=" + collectives}, b.Zipper,
			"join", "--job",
			id, "--cluster", cluster,
			"--layout", "a=1,b=1", "--zipper", f.Addr, "--timeout", "20s", "--mpi", OpenMPI, "--", prog, "32")
	}
	one, two := half("a", "leaders=2"), half("b", "leaders=3")
	stderr := one.Wait().Stderr + two.Wait().Stderr
	if !strings.Contains(stderr, "they must be equal in all clusters") || !strings.Contains(stderr, "leaders=2") ||
		!strings.Contains(stderr, "leaders=3") {
		t.Errorf("stderr:\n%s", stderr)
	}
	b.NothingLeft(id)
	one, two = half("a", "leaders=4"), half("b", "")
	b.OK(one.Wait())
	b.OK(two.Wait())
}
