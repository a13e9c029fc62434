package e2e

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
)

var hostKeyLogged = regexp.MustCompile(`host key\s+\{"key": "([^"]*)"`)

// hostKey returns the host key that a forwarder has logged.
func hostKey(t *testing.T, f *Forwarder) string {
	t.Helper()
	m := hostKeyLogged.FindStringSubmatch(f.Stderr())
	if m == nil {
		t.Fatalf("the forwarder does not say its host key:\n%s", f.Stderr())
	}
	return m[1]
}

// TestHostKeys checks that a job runs through the forwarder whose key it has, however it got the
// key, and through no other.
func TestHostKeys(t *testing.T) {
	b := New(t)
	dir := t.TempDir()
	file, known := filepath.Join(dir, "host_key"), filepath.Join(dir, "known")
	f := b.StartForwarder("--host-key", file)
	key := hostKey(t, f)
	run := func(env []string, flags ...string) Result {
		args := append([]string{b.Zipper, "run", "--cluster", "a=1,mpi=openmpi", "--cluster", "b=1,mpi=mpich"},
			flags...)
		return b.Run(nil, env, append(args, "--", bad(b), "finish")...)
	}
	other := b.StartForwarder("--host-key", filepath.Join(dir, "other"))
	wrong := hostKey(t, other)
	if key == wrong {
		t.Fatal("two forwarders with files of their own have one key")
	}
	b.OK(run(nil, "--zipper", f.Addr+"#"+key))
	refuses := func(what string, r Result, words ...string) {
		t.Helper()
		if r.Status == 0 {
			t.Errorf("%s: it has run:\n%v", what, r)
			return
		}
		b.Fails(r, r.Status, words...)
	}
	refuses("another key", run(nil, "--zipper", f.Addr+"#"+wrong), "wrong host key",
		"it is another forwarder, or an attacker in between")
	if strings.Contains(f.Stderr(), "job runs") == strings.Contains(other.Stderr(), "job runs") {
		t.Error("the job ran at the other forwarder, or at both")
	}
	if n := strings.Count(f.Stderr(), "begins to gather"); n != 1 {
		t.Errorf("%d jobs have begun at the forwarder: one with another key tells it nothing of itself", n)
	}
	strict := []string{"ZIPPER_HOST_KEYS=strict", "ZIPPER_KNOWN_FORWARDERS=" + known}
	refuses("strict", run(strict, "--zipper", f.Addr), "is not known")
	accept := []string{"ZIPPER_HOST_KEYS=accept-new", "ZIPPER_KNOWN_FORWARDERS=" + known}
	b.OK(run(accept, "--zipper", f.Addr))
	if text, err := os.ReadFile(known); err != nil || string(text) != f.Addr+" "+key+"\n" {
		t.Errorf("kept: %q, %v", text, err)
	}
	b.OK(run(strict, "--zipper", f.Addr))
	b.OK(run(strict)) // the forwarder of the run itself
	// Another forwarder takes over the address.
	f.Signal(syscall.SIGTERM)
	f.Wait()
	b.StartForwarderAt(f.Addr, "--host-key", filepath.Join(dir, "other"))
	refuses("another forwarder at the address", run(accept, "--zipper", f.Addr), "wrong host key")
}

// TestHostKeyIsKept checks that a forwarder has the same key at its next start, without a path
// being given.
func TestHostKeyIsKept(t *testing.T) {
	b := New(t)
	env := []string{"XDG_STATE_HOME=" + t.TempDir()}
	var keys []string
	for range 2 {
		p := b.Start(nil, env, b.Zipper, "forwarder", "--listen", "127.0.0.1:0", "--status", "none")
		b.WaitFor(waitForwarder, "the forwarder to listen", func() bool { return strings.Contains(p.Stderr(), "listening") })
		keys = append(keys, hostKey(t, &Forwarder{Proc: p}))
		p.Signal(syscall.SIGTERM)
		p.Wait()
	}
	if keys[0] != keys[1] {
		t.Errorf("keys %v", keys)
	}
}

// TestForwardersProveTheirKeys checks that the forwarders of a job of several hops prove their keys
// to each other.
func TestForwardersProveTheirKeys(t *testing.T) {
	b := New(t)
	dir := t.TempDir()
	x := b.StartForwarder("--host-key", filepath.Join(dir, "x"))
	y := b.StartForwarder("--host-key", filepath.Join(dir, "y"))
	run := func(keyX, keyY string) Result {
		return b.Run(nil, nil, b.Zipper, "run", "--cluster", "a=1,mpi=openmpi", "--cluster", "b=1,mpi=mpich",
			"--cluster", "c=1,mpi=openmpi",
			"--zipper", x.Addr+"=a,b#"+keyX, "--zipper", y.Addr+"=b,c#"+keyY, "--", bad(b), "finish")
	}
	b.OK(run(hostKey(t, x), hostKey(t, y)))
	if r := run(hostKey(t, x), hostKey(t, x)); r.Status == 0 {
		t.Errorf("a forwarder with another key was taken:\n%v", r)
	} else {
		b.Fails(r, r.Status, "wrong host key")
	}
}
