package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// nextRelease makes an installation whose program and engine are one version of the protocol ahead
// of this one, and also support this version. It returns the installation's root.
func nextRelease(b *Bed) string {
	b.T.Helper()
	root := b.T.TempDir()
	for _, dir := range []string{"bin", "lib"} {
		if err := os.Mkdir(filepath.Join(root, dir), 0o755); err != nil {
			b.T.Fatal(err)
		}
	}
	libs, err := filepath.Glob(filepath.Join(b.Root, "lib", "*.so"))
	if err != nil {
		b.T.Fatal(err)
	}
	for _, lib := range libs {
		if filepath.Base(lib) == engineLibrary {
			continue
		}
		text, err := os.ReadFile(lib)
		if err == nil {
			err = os.WriteFile(filepath.Join(root, "lib", filepath.Base(lib)), text, 0o755)
		}
		if err != nil {
			b.T.Fatal(err)
		}
	}
	b.buildNext(filepath.Join(root, "bin", "zipper"), "./cmd/zipper")
	b.buildNext(filepath.Join(root, "lib", engineLibrary), "-buildmode=c-shared",
		"-ldflags=-extldflags=-Wl,-T,"+filepath.Join(b.Root, "cgo", "abi", "lib", "start.ld"), "./cgo/abi/lib")
	return root
}

const engineLibrary = "libmmpi-engine.so"

func (b *Bed) buildNext(out string, what ...string) {
	b.T.Helper()
	cmd := exec.Command("go", append([]string{"build", "-tags", "zipper_next", "-o", out}, what...)...)
	cmd.Dir = b.Root
	if text, err := cmd.CombinedOutput(); err != nil {
		b.T.Fatalf("%s: %v\n%s", cmd, err, text)
	}
}

// TestVersions checks the statements of COMPATIBILITY.md about releases whose protocols are one
// version apart.
func TestVersions(t *testing.T) {
	b := New(t)
	root := nextRelease(b)
	next := *b
	next.Zipper = filepath.Join(root, "bin", "zipper")
	program := bad(b)
	run := func(b *Bed, zipper string) Result {
		return b.Run(nil, nil, b.Zipper, "run", "--zipper", zipper, "--cluster", "a=1,mpi=openmpi",
			"--cluster", "b=1,mpi=mpich", "--", program, "finish")
	}
	ours, newer := b.StartForwarder(), next.StartForwarder()
	b.OK(run(b, newer.Addr))    // forwarders are updated first
	b.OK(run(&next, ours.Addr)) // newer ranks use the forwarder's version
	b.OK(run(&next, newer.Addr))

	// The two clusters of a job have the same release.
	secret := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte(SecretOf("versions")), 0o600); err != nil {
		t.Fatal(err)
	}
	half := func(b *Bed, cluster, mpi string) *Proc {
		return b.Start(nil, nil, b.Zipper, "join", "--job", "versions", "--secret-file", secret, "--zipper",
			newer.Addr,
			"--layout", "a=1,b=1", "--cluster", cluster, "--mpi", mpi, "--timeout", "20s", "--", program, "finish")
	}
	first := half(b, "a", OpenMPI)
	b.WaitFor(waitForwarder, "the first half", func() bool { return strings.Contains(newer.Stderr(), "job begins to gather") })
	second := half(&next, "b", MPICH)
	for _, p := range []*Proc{second, first} {
		r := p.Wait()
		b.Fails(r, r.Status, "protocol version", "install the same release of Zipper on all clusters of a job")
		if r.Status == 0 {
			t.Error("it has run")
		}
	}
}
