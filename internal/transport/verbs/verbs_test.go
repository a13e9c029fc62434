//go:build rdma && cgo

package verbs

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/leidenzipper/zipper/internal/transport"
	"github.com/leidenzipper/zipper/internal/transport/transporttest"
)

// address returns the address of an RDMA port of this host. If ZIPPER_VERBS_ADDRESS names one its
// absence is a failure.
func address(t *testing.T) string {
	t.Helper()
	if a := os.Getenv("ZIPPER_VERBS_ADDRESS"); a != "" {
		return a
	}
	addrs, err := net.InterfaceAddrs()
	if err != nil {
		t.Fatal(err)
	}
	why := errors.New("no network address")
	for _, a := range addrs {
		n, ok := a.(*net.IPNet)
		if !ok {
			continue
		}
		ln, err := Listen(net.JoinHostPort(n.IP.String(), "0"), Options{})
		if err == nil {
			ln.Close()
			return n.IP.String()
		}
		why = err
	}
	t.Skipf("no RDMA device to test with (scripts/verbs-lab makes some): %v", why)
	return ""
}

func TestConformance(t *testing.T) {
	host := net.JoinHostPort(address(t), "0")
	for name, k := range map[string]struct {
		addr string
		o    Options
	}{
		"default": {host, Options{}},
		"small":   {host, Options{Slots: 5, SlotSize: 1000, Blocks: 2, BlockSize: 5000}},
		"cm":      {host + "?connect=cm", Options{}},
	} {
		t.Run(name, func(t *testing.T) {
			transporttest.Run(t,
				transporttest.Setup{Can: transporttest.Listening | transporttest.Lender | transporttest.Placer,
					Open: func(t *testing.T) (transport.Listener, transport.Dialer) {
						ln, err := Listen(k.addr, k.o)
						if err != nil {
							t.Fatal(err)
						}
						return ln, Dialer{k.o}
					}})
		})
	}
}

// pair opens a link whose ends may have rings of different sizes.
func pair(t *testing.T, listen, dial Options) (dialed, accepted *link) {
	t.Helper()
	ln, err := Listen(net.JoinHostPort(address(t), "0"), listen)
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	return connected(t, ln, dial)
}

// connected opens a link to a listener.
func connected(t *testing.T, ln *Listener, o Options) (dialed, accepted *link) {
	t.Helper()
	type result struct {
		l   transport.Link
		err error
	}
	got := make(chan result, 1)
	go func() {
		l, err := ln.Accept()
		got <- result{l, err}
	}()
	d, err := Dialer{o}.Dial(context.Background(), ln.Addr())
	if err != nil {
		t.Fatal(err)
	}
	r := <-got
	if r.err != nil {
		t.Fatal(r.err)
	}
	t.Cleanup(func() { d.Close(); r.l.Close() })
	return d.(*link), r.l.(*link)
}

// TestRingsOfDifferentSizes checks credit with the larger ring at either end.
func TestRingsOfDifferentSizes(t *testing.T) {
	a, b := pair(t, Options{Slots: 4, SlotSize: 256}, Options{Slots: 100, SlotSize: 1000})
	want := make([]byte, 100_000)
	for i := range want {
		want[i] = byte(i * 7 / 3)
	}
	for _, dir := range [][2]*link{{a, b}, {b, a}} {
		sent := make(chan error, 1)
		go func() { sent <- transporttest.WriteFull(dir[0], want) }()
		got := make([]byte, len(want))
		if err := transporttest.ReadFull(dir[1], got); err != nil {
			t.Fatal(err)
		}
		if err := <-sent; err != nil || string(got) != string(want) {
			t.Fatalf("changed, %v", err)
		}
	}
}

// TestBusy checks that a reader and a writer that never sleep, nor ask for events (--poll busy),
// move bytes and pieces in both directions.
func TestBusy(t *testing.T) {
	a, b := pair(t, Options{}, Options{})
	const pieces, small = 20, 1000
	body := make([]byte, 100_000)
	for i := range body {
		body[i] = byte(i * 5 / 3)
	}
	end := time.Now().Add(transporttest.Patience)
	again := func(try func() error) error {
		for {
			if err := try(); err != transport.ErrAgain {
				return err
			}
			if time.Now().After(end) {
				return errors.New("out of patience")
			}
			runtime.Gosched()
		}
	}
	failed := make(chan error, 4)
	for _, dir := range [][2]*link{{a, b}, {b, a}} {
		go func() {
			failed <- func() error {
				for range pieces {
					if err := again(func() error { return dir[0].TrySend(body[:50], body[50:]) }); err != nil {
						return err
					}
					for rest := body[:small]; len(rest) > 0; {
						if err := again(func() error {
							n, err := dir[0].TryWrite(rest)
							rest = rest[n:]
							return err
						}); err != nil {
							return err
						}
					}
				}
				return nil
			}()
		}()
		go func() {
			failed <- func() error {
				got := make([]byte, pieces*(len(body)+small))
				for rest := got; len(rest) > 0; {
					if err := again(func() error {
						n, err := dir[1].TryRead(rest)
						rest = rest[n:]
						return err
					}); err != nil {
						return err
					}
				}
				if want := bytes.Repeat(append(slices.Clone(body), body[:small]...), pieces); !bytes.Equal(got, want) {
					return errors.New("changed")
				}
				return nil
			}()
		}()
	}
	for range 4 {
		if err := <-failed; err != nil {
			t.Error(err)
		}
	}
	for _, l := range []*link{a, b} {
		if l.in.armed {
			t.Error("an event was asked for")
		}
	}
}

// TestForkAfterInit checks that child processes have memory that is registered here, although an
// MPI library has called ibv_fork_init. It runs in a process of its own.
func TestForkAfterInit(t *testing.T) {
	host := address(t)
	if os.Getenv("ZIPPER_VERBS_CHILD") == "" {
		cmd := exec.Command(self(t), "-test.run", "^TestForkAfterInit$")
		// with this variable the library calls it
		cmd.Env = append(os.Environ(), "ZIPPER_VERBS_CHILD=1", "ZIPPER_VERBS_ADDRESS="+host, "RDMAV_FORK_SAFE=1")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%v\n%s", err, out)
		}
		return
	}
	a, _ := pair(t, Options{}, Options{})
	mem, err := unix.Mmap(-1, 0, 1<<16, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Munmap(mem)
	r, err := a.Pin(mem[5000:9000])
	if err != nil {
		t.Fatal(err)
	}
	defer r.Release()
	maps, err := os.ReadFile("/proc/self/smaps")
	if err != nil {
		t.Fatal(err)
	}
	// The flag dc means that child processes do not get the pages.
	all, ours := 0, false
	for _, line := range strings.Split(string(maps), "\n") {
		var from, to uintptr
		if n, _ := fmt.Sscanf(line, "%x-%x ", &from, &to); n == 2 {
			ours = from < start(mem)+1<<16 && start(mem) < to
		} else if flags, ok := strings.CutPrefix(line, "VmFlags:"); ok && ours {
			if all++; slices.Contains(strings.Fields(flags), "dc") {
				t.Errorf("kept from children: %s", line)
			}
		}
	}
	if all == 0 {
		t.Error("no such memory in /proc/self/smaps")
	}
}

// TestLargeMessage checks that a message larger than a slot ends the reader's link.
func TestLargeMessage(t *testing.T) {
	a, b := pair(t, Options{SlotSize: 256}, Options{SlotSize: 4096})
	if err := a.out.post(0, 1000); err != nil {
		t.Fatal(err)
	}
	if err := transporttest.ReadFull(b, make([]byte, 1)); err == nil || err == io.EOF ||
		strings.Contains(err.Error(), "patience") {
		t.Errorf("got %v", err)
	}
}

// TestForeign checks TCP connections to another program, or to a silent one.
func TestForeign(t *testing.T) {
	ln, err := net.Listen("tcp", net.JoinHostPort(address(t), "0"))
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	answers := make(chan string, 2)
	answers <- "220 mail.example.org ESMTP\r\n"
	answers <- ""
	go func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			c.Write([]byte(<-answers))
			defer c.Close()
		}
	}()
	for range 2 {
		start := time.Now()
		l, err := Dialer{Options{Proof: 500 * time.Millisecond}}.Dial(context.Background(), ln.Addr().String())
		if err == nil {
			l.Close()
			t.Fatal("connected")
		}
		if d := time.Since(start); d > transporttest.Patience {
			t.Errorf("took %v: %v", d, err)
		}
	}
}

// TestMemlock checks that the error for a limit that is too low names the limit. It runs in a
// process of its own, without the capability.
func TestMemlock(t *testing.T) {
	host := address(t)
	if os.Getenv("ZIPPER_VERBS_CHILD") == "" {
		if os.Getuid() != 0 {
			t.Skip("needs root to give up the capability IPC_LOCK")
		}
		cmd := exec.Command("sh", "-c",
			`ulimit -l 64 && exec setpriv --bounding-set=-ipc_lock --inh-caps=-ipc_lock "$0" -test.run '^TestMemlock$'`, self(t))
		cmd.Env = append(os.Environ(), "ZIPPER_VERBS_CHILD=1", "ZIPPER_VERBS_ADDRESS="+host)
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Errorf("%v\n%s", err, out)
		}
		return
	}
	var r unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_MEMLOCK, &r); err != nil || r.Cur != 64<<10 {
		t.Fatalf("limit is %d, %v", r.Cur, err)
	}
	ln, err := Listen(net.JoinHostPort(host, "0"), Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	l, err := Dialer{}.Dial(context.Background(), ln.Addr())
	if err == nil {
		l.Close()
		t.Fatal("connected")
	}
	if !strings.Contains(err.Error(), "ulimit -l, is 64 KiB") {
		t.Error(err)
	}
}

func self(t *testing.T) string {
	exe, err := filepath.EvalSymlinks("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	return exe
}
