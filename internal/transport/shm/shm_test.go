package shm

import (
	"bytes"
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/leidenzipper/zipper/internal/transport"
	"github.com/leidenzipper/zipper/internal/transport/transporttest"
)

func TestConformance(t *testing.T) {
	for _, size := range []int{0, 4096} {
		t.Run("", func(t *testing.T) {
			transporttest.Run(t, transporttest.Setup{Can: transporttest.Listening,
				Open: func(t *testing.T) (transport.Listener, transport.Dialer) {
					ln, err := Listen(filepath.Join(t.TempDir(), "s"), size)
					if err != nil {
						t.Fatal(err)
					}
					return ln, Dialer{}
				}})
		})
	}
}

func open(t *testing.T, size int) (dialed, accepted *link) {
	t.Helper()
	ln, err := Listen(filepath.Join(t.TempDir(), "s"), size)
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	got := make(chan transport.Link, 1)
	go func() {
		l, err := ln.Accept()
		if err != nil {
			t.Error(err)
		}
		got <- l
	}()
	d, err := Dialer{}.Dial(context.Background(), ln.Addr())
	if err != nil {
		t.Fatal(err)
	}
	dialed, accepted = d.(*link), (<-got).(*link)
	t.Cleanup(func() { dialed.Close(); accepted.Close() })
	return dialed, accepted
}

// TestHostileCounters checks that a peer which writes invalid shared counters makes the link fail,
// and does no other harm.
func TestHostileCounters(t *testing.T) {
	for _, tail := range []uint64{4097, 1 << 63, 1<<64 - 1} {
		a, b := open(t, 4096)
		a.out.tail.Store(tail)
		if n, err := b.TryRead(make([]byte, 100)); n != 0 || err != errCorrupt {
			t.Errorf("tail %d: read gives %d, %v", tail, n, err)
		}
		if !b.Arm() {
			t.Errorf("tail %d: would sleep on a broken ring", tail)
		}
		// The head is ahead of the tail. A wrong head within the ring's size only harms the peer
		// itself.
		a.in.head.Store(tail&^(1<<63-1) + 1)
		if n, err := b.TryWrite(make([]byte, 100)); n != 0 || err != errCorrupt {
			t.Errorf("head %d: write gives %d, %v", tail, n, err)
		}
	}
}

// TestWrap checks counters that wrap at the end of the ring, and at 64 bits.
func TestWrap(t *testing.T) {
	a, b := open(t, 4096)
	const start = 1<<64 - 5000
	for _, r := range []ring{a.out, a.in} {
		r.head.Store(start)
		r.tail.Store(start)
	}
	p, q := make([]byte, 1000), make([]byte, 1000)
	for i := range 20 {
		for k := range p {
			p[k] = byte(i + k)
		}
		if err := transporttest.WriteFull(a, p); err != nil {
			t.Fatal(err)
		}
		if err := transporttest.ReadFull(b, q); err != nil || !bytes.Equal(p, q) {
			t.Fatalf("round %d: %v", i, err)
		}
	}
}

// TestNoSystemCallWhenAwake checks that a reader that does not sleep is not signalled.
func TestNoSystemCallWhenAwake(t *testing.T) {
	a, b := open(t, 4096)
	p := []unix.PollFd{{Fd: int32(b.FD()), Events: unix.POLLIN}}
	a.TryWrite([]byte{1})
	if n, _ := unix.Poll(p, 0); n != 0 {
		t.Error("signalled though not armed")
	}
	transporttest.ReadFull(b, []byte{0})
	if b.Arm() {
		t.Fatal("nothing is there")
	}
	a.TryWrite([]byte{1})
	if n, _ := unix.Poll(p, 0); n != 1 {
		t.Error("not signalled though armed")
	}
}

func TestPath(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	first, err := Listen(path, 0)
	if err != nil {
		t.Fatal(err)
	}
	if st, err := os.Stat(path); err != nil || st.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v", st.Mode(), err)
	}
	if l, err := Listen(path, 0); err == nil {
		l.Close()
		t.Error("two listeners on one path")
	}
	// A process that died leaves its socket behind.
	first.l.SetUnlinkOnClose(false)
	first.Close()
	second, err := Listen(path, 0)
	if err != nil {
		t.Fatalf("after a dead process: %v", err)
	}
	second.Close()
	if _, err := os.Stat(path); !os.IsNotExist(err) {
		t.Errorf("the path is left behind: %v", err)
	}
	if err := os.WriteFile(path, []byte("precious"), 0o600); err != nil {
		t.Fatal(err)
	}
	if l, err := Listen(path, 0); err == nil {
		l.Close()
		t.Error("took the place of a file")
	}
	if b, _ := os.ReadFile(path); string(b) != "precious" {
		t.Error("a file that is not a socket was removed")
	}
	for _, size := range []int{1, 4095, 5000, 1 << 40} {
		if l, err := Listen(path+"x", size); err == nil {
			l.Close()
			t.Errorf("size %d taken", size)
		}
	}
}

// TestForeignSocket checks a socket at which another program listens.
func TestForeignSocket(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	ln, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	go func() {
		c, err := ln.Accept()
		if err == nil {
			c.Write([]byte("220 mail.example.org ESMTP"))
			c.Close()
		}
	}()
	if _, err := (Dialer{}).Dial(context.Background(), path); err == nil {
		t.Error("taken for a forwarder")
	}
}

// TestLiveSocketIsNotReplaced checks that a listener whose queue of connections is full keeps its
// socket, and that a socket which nobody listens at is replaced.
func TestLiveSocketIsNotReplaced(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	socket := func() int {
		fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			t.Fatal(err)
		}
		return fd
	}
	live := socket()
	if err := errors.Join(unix.Bind(live, &unix.SockaddrUnix{Name: path}), unix.Listen(live, 0)); err != nil {
		t.Fatal(err)
	}
	for full := false; !full; {
		fd := socket()
		defer unix.Close(fd)
		full = errors.Is(unix.Connect(fd, &unix.SockaddrUnix{Name: path}), unix.EAGAIN)
	}
	if l, err := Listen(path, 0); err == nil {
		l.Close()
		t.Fatal("a live socket was replaced")
	}
	unix.Close(live)
	l, err := Listen(path, 0)
	if err != nil {
		t.Fatal(err)
	}
	l.Close()
}

// TestSocketIsPrivateFromTheStart checks that a socket has its permissions when it appears, so that
// no other user can connect, or put a link in its place, before they are set.
func TestSocketIsPrivateFromTheStart(t *testing.T) {
	dir := t.TempDir()
	watch, err := unix.InotifyInit1(unix.IN_NONBLOCK | unix.IN_CLOEXEC)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(watch)
	if _, err := unix.InotifyAddWatch(watch, dir, unix.IN_CREATE|unix.IN_ATTRIB); err != nil {
		t.Fatal(err)
	}
	l, err := Listen(filepath.Join(dir, "s"), 0)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	events := make([]byte, 4096)
	n, err := unix.Read(watch, events)
	if err != nil || n == 0 {
		t.Fatalf("no event: %v", err)
	}
	for at := 0; at < n; {
		e := (*unix.InotifyEvent)(unsafe.Pointer(&events[at]))
		if e.Mask&unix.IN_ATTRIB != 0 {
			t.Error("the permissions are changed after the socket has appeared")
		}
		at += unix.SizeofInotifyEvent + int(e.Len)
	}
}
