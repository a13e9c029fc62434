package e2e

import (
	"encoding/json"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/leidenzipper/zipper/forwarder"
	"github.com/leidenzipper/zipper/forwarder/monitor"
	"github.com/leidenzipper/zipper/handshake/handshaketest"
	"github.com/leidenzipper/zipper/internal/wire"
)

// stream starts a job whose ranks send until a file exists, and waits until they do. It returns the
// job and a function that ends it.
func (b *Bed) stream(flags ...string) (p *Proc, stop func() Result) {
	t := b.T
	prog := b.Compile(OpenMPI, "test/programs/c/stream.c")
	end := filepath.Join(t.TempDir(), "stop")
	args, id := b.runArgs(Job{Clusters: []Cluster{A(1, OpenMPI), B(1, OpenMPI)}, Flags: flags})
	p = b.Start(nil, nil, append(args, "--", prog, end)...)
	b.waitProgress(p)
	return p, func() Result {
		if err := os.WriteFile(end, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		r := b.OK(p.Wait())
		b.NothingLeft(id)
		return r
	}
}

// waitProgress waits until a job of stream has sent some more.
func (b *Bed) waitProgress(p *Proc) {
	b.T.Helper()
	from := strings.Count(p.Stdout(), "round ")
	b.WaitFor(time.Minute, "the stream to go on", func() bool { return strings.Count(p.Stdout(), "round ") >= from+3 })
}

// statusOf returns the address of a forwarder's status.
func statusOf(f *Forwarder) string {
	_, after, _ := strings.Cut(f.Stderr(), "status\t")
	_, after, _ = strings.Cut(after, `"address": "`)
	at, _, _ := strings.Cut(after, `"`)
	return at
}

// TestReloadAndDrain checks that reload and drain of a forwarder under a running job lose nothing.
func TestReloadAndDrain(t *testing.T) {
	b := New(t)
	file := filepath.Join(t.TempDir(), "forwarder.yaml")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("level: plain\nmax-ranks: 1000\n")
	f := b.StartForwarder("--config", file, "--status", "127.0.0.1:0")
	at := statusOf(f)
	zipper := func(args ...string) Result { return b.Run(nil, nil, append([]string{b.Zipper}, args...)...) }
	other := func() Result {
		return zipper("run", "--zipper", f.Addr, "--cluster", "a=1,mpi=openmpi", "--cluster", "b=1,mpi=mpich", "--",
			bad(b), "finish")
	}
	p, stop := b.stream("--zipper", f.Addr)
	b.OK(other())

	write("level: sealed\n")
	b.OK(zipper("reload", at))
	b.WaitFor(waitForwarder, "the file to be read again", func() bool { return strings.Contains(f.Stderr(), "configuration read again") })
	b.Fails(other(), 1, "serves sealed or stronger")
	write("level: sealed\nlevle: plain\nloops: 3")
	b.OK(zipper("reload", at))
	b.WaitFor(waitForwarder, "the mistake to be told", func() bool { return strings.Contains(f.Stderr(), `there is no option \"levle\"`) })
	b.Fails(other(), 1, "serves sealed or stronger") // as before
	write("loops: 3\nprotocol: classic\n")
	b.OK(zipper("reload", at))
	b.WaitFor(waitForwarder, "the options for the next start", func() bool {
		return strings.Contains(f.Stderr(), "next start: --protocol, --loops")
	})
	b.OK(other())

	if r := b.OK(zipper("drain", at)); !strings.Contains(r.Stdout, "it has 1") {
		t.Errorf("drain says: %v", r)
	}
	b.Fails(other(), 1, "is being drained")
	if r := b.OK(zipper("status", at)); !strings.Contains(r.Stdout, "takes no new jobs") {
		t.Errorf("status says: %v", r)
	}
	b.waitProgress(p)
	waits := b.Start(nil, nil, b.Zipper, "drain", "--wait", at)
	b.WaitFor(waitForwarder, "drain to have asked", func() bool { return strings.Contains(waits.Stdout(), "it has 1") })
	stop()
	if r := b.OK(f.Wait()); !strings.Contains(r.Stderr, "all jobs are over") {
		t.Errorf("the forwarder says: %v", r)
	}
	b.OK(waits.Wait())
	b.Fails(zipper("drain", at), 1, "no forwarder shows its status")
}

// TestDrainAmongStrangers checks that a forwarder can be drained, and shows its status, while
// strangers have jobs whose status is longer than zipper reads. The status contains the number of
// jobs that it leaves out.
func TestDrainAmongStrangers(t *testing.T) {
	b := New(t)
	f := b.StartForwarder("--status", "127.0.0.1:0")
	at := statusOf(f)
	const addresses, each = 5, forwarder.MaxGatheringFrom
	var layout []wire.Cluster
	for i := range 20 {
		layout = append(layout, wire.Cluster{Name: fmt.Sprintf("%02d", i) + strings.Repeat("<", wire.MaxName-2), Size: 1})
	}
	for i := range addresses * each {
		c, err := connectFrom(fmt.Sprintf("127.0.0.%d", 2+i/each), f.Addr)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		join, err := handshaketest.JoinFrame(c, floodIdentity(fmt.Sprint("stranger-", i), 0, layout))
		if err == nil {
			_, err = c.Write(join)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	b.WaitFor(waitForwarder, "the jobs to gather", func() bool {
		s, err := monitor.FetchBrief(t.Context(), at)
		return err == nil && s.MoreJobs == addresses*each
	})
	if r := b.OK(b.Run(nil, nil, b.Zipper, "status", at)); !strings.Contains(r.Stdout, " more jobs, which are not listed") {
		t.Errorf("status does not say what it leaves out; its end: %q", r.Stdout[max(0, len(r.Stdout)-200):])
	}
	if r := b.OK(b.Run(nil, nil, b.Zipper, "drain", at)); !strings.Contains(r.Stdout, fmt.Sprint("it has ", addresses*each)) {
		t.Errorf("drain says: %v", r)
	}
}

// TestIdleStatusClientsLeaveDescriptors checks that clients that keep connections to the status
// address open use no descriptors that ranks need, and keep no other client from the status.
func TestIdleStatusClientsLeaveDescriptors(t *testing.T) {
	b := New(t)
	f := b.StartForwarder("--status", "127.0.0.1:0")
	at := statusOf(f)
	const files = 128
	few := unix.Rlimit{Cur: files, Max: files}
	if err := unix.Prlimit(f.Cmd.Process.Pid, unix.RLIMIT_NOFILE, &few, nil); err != nil {
		t.Fatal(err)
	}
	for i := range 2 * files {
		c, err := net.DialTimeout("tcp", at, waitForwarder)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		_ = c.SetDeadline(time.Now().Add(waitForwarder)) // sooner than an idle connection is closed
		_, _ = c.Write([]byte("GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"))
		if _, err := c.Read(make([]byte, 1)); err != nil {
			t.Fatalf("connection %d: %v", i, err)
		}
	}
	pair := joinPair(t, f.Addr, "job")
	defer pair.close()
	pair.ping(t)
	if r := b.OK(b.Run(nil, nil, b.Zipper, "status", at)); !strings.Contains(r.Stdout, "job job") {
		t.Errorf("status: %v", r)
	}
}

// TestReloadErrorsNameTheReason checks that commands which cannot be carried out report why.
func TestReloadErrorsNameTheReason(t *testing.T) {
	b := New(t)
	f := b.StartForwarder("--status", "127.0.0.1:0")
	b.Fails(b.Run(nil, nil, b.Zipper, "reload", statusOf(f)), 1, "started without --config")
	b.Fails(b.Run(nil, nil, b.Zipper, "forwarder", "--config", "/nowhere"), 2, "/nowhere")
	// A server that claims to be a forwarder, and to be process 1.
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	go func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			_, _ = c.Read(make([]byte, 4096)) // the request: an answer before it is no answer
			text, _ := json.Marshal(map[string]any{"pid": 1, "config": "x"})
			_, _ = c.Write(append([]byte("HTTP/1.0 200 OK\r\nContent-Type: application/json\r\n\r\n"), text...))
			c.Close()
		}
	}()
	b.Fails(b.Run(nil, nil, b.Zipper, "drain", ln.Addr().String()), 1, "not a zipper forwarder on this host")
}

// TestSystemd checks that systemd is notified when a forwarder listens, reloads, lives and stops,
// and that a socket which systemd has opened is used.
func TestSystemd(t *testing.T) {
	b := New(t)
	at := filepath.Join(t.TempDir(), "notify")
	notified, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: at, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	defer notified.Close()
	hears := func(want string) {
		t.Helper()
		for end := time.Now().Add(waitForwarder); ; {
			_ = notified.SetReadDeadline(end)
			text := make([]byte, 256)
			n, err := notified.Read(text)
			if err != nil {
				t.Fatalf("systemd does not hear %s: %v", want, err)
			}
			if string(text[:n]) == want {
				return
			}
		}
	}
	addr := freePort(t)
	p := b.Start(nil, []string{"NOTIFY_SOCKET=" + at, "WATCHDOG_USEC=200000"}, "systemd-socket-activate", "--listen",
		addr,
		"--setenv=NOTIFY_SOCKET", "--setenv=WATCHDOG_USEC", b.Zipper, "forwarder", "--status", "none", "--log", "info")
	b.WaitFor(waitForwarder, "the socket", func() bool { return strings.Contains(p.Stderr(), "Listening on") })
	b.OK(b.Run(nil, nil, b.Zipper, "run", "--zipper", addr, "--cluster", "a=1,mpi=openmpi", "--cluster",
		"b=1,mpi=mpich",
		"--", bad(b), "finish"))
	hears("READY=1")
	hears("WATCHDOG=1")
	hears("WATCHDOG=1")
	p.Signal(syscall.SIGHUP)
	hears("RELOADING=1")
	hears("READY=1")
	p.Signal(syscall.SIGTERM)
	hears("STOPPING=1")
	p.Wait()
}
