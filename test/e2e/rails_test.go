package e2e

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestForwarderKilledAndRestarted kills one of two forwarders in the middle of transfers, of
// messages or of one-sided operations: the job goes on, and every byte is correct. After its
// restart the forwarder is used again.
func TestForwarderKilledAndRestarted(t *testing.T) {
	for _, program := range []string{"stream.c", "rma_stream.c"} {
		t.Run(program, func(t *testing.T) { killAndRestart(New(t), program) })
	}
}

func killAndRestart(b *Bed, program string) {
	t := b.T
	prog := b.Compile(OpenMPI, "test/programs/c/"+program)
	one, two := b.StartForwarder(), b.StartForwarder()
	stop := filepath.Join(t.TempDir(), "stop")
	args, id := b.runArgs(Job{Clusters: []Cluster{A(2, OpenMPI), B(2, OpenMPI)},
		Flags: []string{"--zipper", one.Addr, "--zipper", two.Addr}})
	p := b.Start(nil, nil, append(args, "--", prog, stop)...)
	rounds := func() int { return strings.Count(p.Stdout(), "round ") }
	more := func(what string) {
		from := rounds()
		b.WaitFor(time.Minute, what, func() bool { return rounds() >= from+3 })
	}
	more("the stream to run")
	b.WaitFor(time.Minute, "all to join the first forwarder",
		func() bool { return strings.Contains(one.Stderr(), "job runs") })
	more("the stream to run over both")
	one.Signal(syscall.SIGKILL)
	one.Wait()
	more("the stream to go on without the first forwarder")
	one = b.StartForwarder("--listen", one.Addr)
	b.WaitFor(time.Minute, "all to join the forwarder that is back",
		func() bool { return strings.Contains(one.Stderr(), "job runs") })
	more("the stream to go on")
	// Now the other one is killed, so the first must be in use.
	two.Signal(syscall.SIGKILL)
	two.Wait()
	more("the stream to go on over the forwarder that is back")
	if err := os.WriteFile(stop, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	r := b.OK(p.Wait())
	b.NothingLeft(id)
	lost := regexp.MustCompile(`rank \d+ - forwarder .* lost: .*; 1 of 2 forwarders in use, it is tried again`)
	if n := len(lost.FindAllString(r.Stderr, -1)); n != 4 { // two clusters, two losses
		t.Errorf("the user was told of a loss %d times, want 4:\n%v", n, r)
	}
	if n := strings.Count(r.Stderr, "is in use; 2 of 2"); n < 2 { // more if one was late at the start
		t.Errorf("the user was told %d times that the forwarder is back, want 2:\n%v", n, r)
	}
	_, worst, _ := strings.Cut(r.Stdout, "longest ")
	t.Log("longest", strings.TrimSpace(worst))
}

// TestForwarderMissing checks that if one of two forwarders has not been started the job runs over
// the other, and the user is told.
func TestForwarderMissing(t *testing.T) {
	b := New(t)
	prog := b.Compile(OpenMPI, "test/programs/c/stream.c")
	one, two := b.StartForwarder(), b.StartForwarder()
	two.Signal(syscall.SIGKILL)
	two.Wait()
	stop := filepath.Join(t.TempDir(), "stop")
	args, id := b.runArgs(Job{Clusters: []Cluster{A(1, OpenMPI), B(1, OpenMPI)},
		Flags: []string{"--zipper", one.Addr, "--zipper", two.Addr}})
	p := b.Start(nil, nil, append(args, "--", prog, stop)...)
	warning := "cannot join forwarder " + two.Addr + "; 1 of 2 forwarders in use, it is tried again"
	b.WaitFor(time.Minute, "both clusters to tell of it", func() bool { return strings.Count(p.Stderr(), warning) == 2 })
	if err := os.WriteFile(stop, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	b.OK(p.Wait())
	b.NothingLeft(id)
}

// TestWindowsRails checks that operations on windows over two forwarders arrive in order, whichever
// forwarder relays them.
func TestWindowsRails(t *testing.T) {
	b := New(t)
	one, two := b.StartForwarder(), b.StartForwarder()
	windows(b, []string{"--zipper", one.Addr, "--zipper", two.Addr}, byLength(some[1:], some))
}
