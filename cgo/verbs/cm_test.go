//go:build rdma && cgo

package verbs

import (
	"bytes"
	"errors"
	"io/fs"
	"net/netip"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func next(t *testing.T, ch *CMChannel, want CMEventType) CMEvent {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); time.Now().Before(end); {
		e, ok, err := ch.Event()
		if err != nil {
			t.Fatal(err)
		}
		if ok {
			if e.Type != want {
				t.Fatalf("%v, status %d; want %v", e.Type, e.Status, want)
			}
			return e
		}
		unix.Poll([]unix.PollFd{{Fd: int32(ch.FD()), Events: unix.POLLIN}}, 1000)
	}
	t.Fatalf("no event, want %v", want)
	return CMEvent{}
}

// TestCM connects two queue pairs through the communication manager, sends between them, and
// disconnects.
func TestCM(t *testing.T) {
	x, gid := port(t)
	host := netip.AddrFrom16(gid.GID).Unmap()
	channel := func() *CMChannel {
		ch := need[*CMChannel](t)(NewCMChannel())
		t.Cleanup(ch.Close)
		return ch
	}
	closes := func(m *CM) *CM {
		t.Cleanup(func() { check(t, m.Close()) })
		return m
	}
	listening, ours, accepting := channel(), channel(), channel()
	l := closes(need[*CM](t)(listening.NewCM()))
	check(t, l.Bind(netip.AddrPortFrom(host, 0)))
	check(t, l.Listen(4))
	if l.Device() != x.Name() || l.Local().Addr() != host || l.Local().Port() == 0 {
		t.Errorf("listens on %s, %v", l.Device(), l.Local())
	}

	pd := need[*PD](t)(x.NewPD())
	t.Cleanup(func() { check(t, pd.Close()) })
	mem := need[[]byte](t)(unix.Mmap(-1, 0, 1<<16, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS))
	mr := need[*MR](t)(pd.Register(mem, LocalWrite))
	t.Cleanup(func() { check(t, mr.Close()); check(t, unix.Munmap(mem)) })
	k := &bench{x: x, ch: need[*CompChannel](t)(x.NewCompChannel())}
	t.Cleanup(func() { check(t, k.ch.Close()) })
	k.cq = need[*CQ](t)(x.NewCQ(64, k.ch))
	t.Cleanup(func() { check(t, k.cq.Close()) })
	pair := func() *QP {
		q := need[*QP](t)(pd.NewQP(QPConfig{SendCQ: k.cq, RecvCQ: k.cq, Sends: 8, Recvs: 8}))
		t.Cleanup(func() { check(t, q.Close()) })
		return q
	}
	a, b := pair(), pair()

	m := closes(need[*CM](t)(ours.NewCM()))
	check(t, m.ResolveAddr(l.Local(), 10*time.Second))
	next(t, ours, AddrResolved)
	check(t, m.ResolveRoute(10*time.Second))
	next(t, ours, RouteResolved)
	if m.Device() != x.Name() || m.Port() != 1 || m.Peer() != l.Local() {
		t.Errorf("goes by %s:%d to %v", m.Device(), m.Port(), m.Peer())
	}
	if err := m.Connect(a.Num(), make([]byte, MaxConnectData+1)); err == nil || !strings.Contains(err.Error(), "57 bytes of private data") {
		t.Errorf("too much private data: %v", err)
	}
	check(t, m.Connect(a.Num(), bytes.Repeat([]byte("q"), MaxConnectData)))
	e := next(t, listening, ConnectRequest)
	if e.QPN != a.Num() || string(e.Data) != strings.Repeat("q", MaxConnectData) {
		t.Errorf("request: %+v", e)
	}
	n := closes(e.New)
	check(t, n.Migrate(accepting))
	check(t, b.InitBy(n, 0))
	check(t, b.ConnectBy(n, Path{Timeout: 16, Retries: 7}))
	check(t, b.PostRecv(1, Range{mr, 4096, 64}))
	check(t, n.Accept(b.Num(), bytes.Repeat([]byte("p"), MaxAcceptData)))
	if e = next(t, ours, ConnectResponse); e.QPN != b.Num() || string(e.Data) != strings.Repeat("p", MaxAcceptData) {
		t.Errorf("response: %+v", e)
	}
	check(t, a.InitBy(m, 0))
	check(t, a.ConnectBy(m, Path{Timeout: 16, Retries: 7}))
	check(t, m.Establish())
	next(t, accepting, Established)

	copy(mem, "through")
	check(t, a.Post(Request{ID: 2, Op: Send, Flags: Signaled, Local: Range{mr, 0, 7}}))
	if got := k.await(t, 2); got[1].Status != 0 || got[2].Status != 0 || string(mem[4096:4096+7]) != "through" {
		t.Errorf("%+v", got)
	}

	check(t, m.Disconnect())
	next(t, accepting, Disconnected)
	check(t, n.Disconnect())
	next(t, ours, Disconnected)
}

// TestCMFailures checks that impossible operations return an error or an event.
func TestCMFailures(t *testing.T) {
	_, gid := port(t)
	ch := need[*CMChannel](t)(NewCMChannel())
	defer ch.Close()
	for name, addr := range map[string]string{"not ours": "203.0.113.7:0", "not a device's": "127.0.0.1:0"} {
		m := need[*CM](t)(ch.NewCM())
		if err := m.Bind(netip.MustParseAddrPort(addr)); err == nil && m.Device() != "" {
			t.Errorf("%s: bound to %s", name, m.Device())
		}
		check(t, m.Close())
	}
	m := need[*CM](t)(ch.NewCM())
	check(t, m.ResolveAddr(netip.AddrPortFrom(netip.AddrFrom16(gid.GID).Unmap(), 9), 10*time.Second))
	next(t, ch, AddrResolved)
	check(t, m.ResolveRoute(10*time.Second))
	next(t, ch, RouteResolved)
	check(t, m.Connect(7, nil))
	if e := next(t, ch, Rejected); e.Status != RejectNoListener {
		t.Errorf("no listener: status %d", e.Status)
	}
	if err := m.Establish(); err == nil {
		t.Error("established a connection that was rejected")
	}
	check(t, m.Close())
}

// TestCMFile checks that the error of a host without the communication manager names the remedy.
func TestCMFile(t *testing.T) {
	err := reachable(filepath.Join(t.TempDir(), "rdma_cm"))
	if !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), "modprobe rdma_ucm") {
		t.Error(err)
	}
}
