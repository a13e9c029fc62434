//go:build rdma && cgo

package verbs

import (
	"bytes"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// bench is two connected queue pairs of one device, and memory.
type bench struct {
	x    *Context
	pd   *PD
	ch   *CompChannel
	cq   *CQ
	a, b *QP
	mem  []byte
	mr   *MR
}

// port returns an RDMA port for the test. If ZIPPER_VERBS_ADDRESS, an IP address of a RoCE port, is
// set, a missing port is a failure.
func port(t *testing.T) (x *Context, gid GIDEntry) {
	t.Helper()
	must := os.Getenv("ZIPPER_VERBS_ADDRESS")
	names, err := Devices()
	if err != nil && must != "" {
		t.Fatal(err)
	}
	for _, name := range names {
		x, err := Open(name)
		if err != nil {
			t.Fatal(err)
		}
		gids, err := x.GIDs(1)
		if err != nil {
			t.Fatal(err)
		}
		for _, g := range gids {
			if must == "" || netip.AddrFrom16(g.GID).Unmap().String() == must {
				t.Cleanup(func() { check(t, x.Close()) })
				return x, g
			}
		}
		x.Close()
	}
	if must != "" {
		t.Fatalf("no RDMA device has the address %s: %v", must, names)
	}
	t.Skip("no RDMA device on this host (scripts/verbs-lab makes some)")
	return nil, GIDEntry{}
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Error(err)
	}
}

func need[T any](t *testing.T) func(T, error) T {
	return func(v T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

func newBench(t *testing.T, srq func(*PD) *SRQ) *bench { return newBenchOf(t, Reliable, srq) }

func newBenchOf(t *testing.T, service Service, srq func(*PD) *SRQ) *bench {
	t.Helper()
	x, gid := port(t)
	k := &bench{x: x}
	k.pd = need[*PD](t)(x.NewPD())
	t.Cleanup(func() { check(t, k.pd.Close()) })
	k.mem = need[[]byte](t)(unix.Mmap(-1, 0, 1<<16, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS))
	k.mr = need[*MR](t)(k.pd.Register(k.mem, LocalWrite|RemoteWrite|RemoteRead))
	t.Cleanup(func() { check(t, k.mr.Close()); check(t, unix.Munmap(k.mem)) })
	k.ch = need[*CompChannel](t)(x.NewCompChannel())
	t.Cleanup(func() { check(t, k.ch.Close()) })
	k.cq = need[*CQ](t)(x.NewCQ(64, k.ch))
	t.Cleanup(func() { check(t, k.cq.Close()) })
	c := QPConfig{Service: service, SendCQ: k.cq, RecvCQ: k.cq, Sends: 8, Recvs: 8, Inline: 32}
	if srq != nil {
		c.SRQ = srq(k.pd)
	}
	k.a = need[*QP](t)(k.pd.NewQP(c))
	t.Cleanup(func() { check(t, k.a.Close()) })
	k.b = need[*QP](t)(k.pd.NewQP(c))
	t.Cleanup(func() { check(t, k.b.Close()) })
	p := need[PortAttr](t)(x.QueryPort(1))
	for _, e := range [][2]*QP{{k.a, k.b}, {k.b, k.a}} {
		check(t, e[0].Init(1, 0, RemoteWrite|RemoteRead))
		check(t, e[0].Connect(Path{Port: 1, GIDIndex: gid.Index, Global: true, DGID: gid.GID, DLID: p.LID, MTU: p.ActiveMTU, QPN: e[1].Num(), SendPSN: 7, RecvPSN: 7, Timeout: 16, Retries: 7}))
	}
	return k
}

// await sleeps for completions until there are n.
func (k *bench) await(t *testing.T, n int) map[uint64]Completion {
	t.Helper()
	got := map[uint64]Completion{}
	var buf [8]Completion
	for len(got) < n {
		check(t, k.cq.Notify(false))
		m, err := k.cq.Poll(buf[:])
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range buf[:m] {
			got[c.ID] = c
		}
		if m > 0 || len(got) == n {
			continue
		}
		if r, _ := unix.Poll([]unix.PollFd{{Fd: int32(k.ch.FD()), Events: unix.POLLIN}}, 20000); r == 0 {
			t.Fatalf("%d of %d completions", len(got), n)
		}
		if _, err := k.ch.Event(); err != nil {
			t.Fatal(err)
		}
	}
	return got
}

func TestSurvey(t *testing.T) {
	x, gid := port(t)
	a := need[DeviceAttr](t)(x.Query())
	p := need[PortAttr](t)(x.QueryPort(1))
	if a.Ports < 1 || a.MaxQP < 1 || a.MaxCQE < 1 || p.GIDs < 1 || p.ActiveMTU < 1 || p.State == "" || gid.GID == (GID{}) {
		t.Errorf("%+v %+v %+v", a, p, gid)
	}
	if soft := strings.HasPrefix(x.Name(), "rxe"); a.Soft != soft {
		t.Errorf("%s: soft-RoCE: %v", x.Name(), a.Soft)
	}
	if k := need[uint16](t)(x.PKey(1, 0)); k&0x7fff == 0 {
		t.Errorf("partition key %#x", k)
	}
	if _, err := x.QueryPort(99); err == nil {
		t.Error("port 99 exists")
	}
	if _, err := Open("nonsense"); err == nil {
		t.Error("opened nonsense")
	}
}

func TestSendReceive(t *testing.T) {
	k := newBench(t, nil)
	copy(k.mem, "a message in a registered buffer")
	check(t, k.b.PostRecv(1, Range{k.mr, 4096, 100}))
	check(t, k.b.PostRecv(2, Range{k.mr, 8192, 100}))
	check(t, k.b.PostRecv(3, Range{}))
	check(t, k.a.Post(Request{ID: 11, Op: Send, Flags: Signaled, Local: Range{k.mr, 0, 32}}))
	inline := Request{ID: 12, Op: SendImm, Flags: Signaled, Local: Range{k.mr, 2, 7}, Imm: 0xdeadbeef}
	if k.a.Inline() >= 7 {
		inline.Flags |= SendInline
	}
	check(t, k.a.Post(inline))
	check(t, k.a.Post(Request{ID: 13, Op: SendImm, Flags: Signaled | Solicited, Imm: 5}))
	got := k.await(t, 6)
	for id, c := range got {
		if c.Status != 0 || c.Recv != (id < 10) {
			t.Errorf("completion %+v: %v", c, c.Status)
		}
	}
	if c := got[1]; c.Len != 32 || c.HasImm || string(k.mem[4096:4096+32]) != "a message in a registered buffer" {
		t.Errorf("first: %+v", c)
	}
	if c := got[2]; c.Len != 7 || !c.HasImm || c.Imm != 0xdeadbeef || string(k.mem[8192:8192+7]) != "message" {
		t.Errorf("second: %+v", c)
	}
	if c := got[3]; c.Len != 0 || c.Imm != 5 {
		t.Errorf("third: %+v", c)
	}
}

// TestUnreliable checks messages over an unreliable connection, of several packets and by RDMA
// write, and that a message without a posted receive is no error.
func TestUnreliable(t *testing.T) {
	k := newBenchOf(t, Unreliable, nil)
	for i := range k.mem[:5000] {
		k.mem[i] = byte(i * 7)
	}
	// no receive is posted, so the message is lost
	check(t, k.a.Post(Request{ID: 10, Op: Send, Flags: Signaled, Local: Range{k.mr, 0, 9}}))
	if c := k.await(t, 1)[10]; c.Status != 0 {
		t.Errorf("lost message: %v", c.Status)
	}
	check(t, k.b.PostRecv(1, Range{k.mr, 8192, 6000}))
	check(t, k.a.Post(Request{ID: 11, Op: Send, Flags: Signaled, Local: Range{k.mr, 0, 5000}}))
	got := k.await(t, 2)
	if c := got[1]; c.Status != 0 || c.Len != 5000 || !bytes.Equal(k.mem[8192:8192+5000], k.mem[:5000]) {
		t.Errorf("%+v", c)
	}
	check(t, k.b.PostRecv(2, Range{}))
	check(t, k.a.Post(Request{ID: 12, Op: RDMAWriteImm, Flags: Signaled, Local: Range{k.mr, 0, 100}, Imm: 9, RemoteAddr: k.mr.Addr() + 20000, RKey: k.mr.RKey()}))
	if c := k.await(t, 2)[2]; c.Status != 0 || c.Imm != 9 || !bytes.Equal(k.mem[20000:20100], k.mem[:100]) {
		t.Errorf("write: %+v", c)
	}
}

// TestDatagram checks that the payload comes after room for the route header.
func TestDatagram(t *testing.T) {
	k := newBenchOf(t, Datagram, nil)
	copy(k.mem, "a datagram")
	check(t, k.b.PostRecv(1, Range{k.mr, 4096, GRH + 100}))
	check(t, k.a.Post(Request{ID: 11, Op: Send, Flags: Signaled, Local: Range{k.mr, 0, 10}}))
	got := k.await(t, 2)
	if c := got[1]; c.Status != 0 || !c.Recv || c.Len != GRH+10 || string(k.mem[4096+GRH:4096+GRH+10]) != "a datagram" {
		t.Errorf("%+v %q", c, k.mem[4096+GRH:4096+GRH+10])
	}
}

func TestRDMA(t *testing.T) {
	k := newBench(t, nil)
	copy(k.mem, "written far away")
	at := func(off int) (uint64, uint32) { return k.mr.Addr() + uint64(off), k.mr.RKey() }
	addr, key := at(4096)
	check(t, k.a.Post(Request{ID: 1, Op: RDMAWrite, Flags: Signaled, Local: Range{k.mr, 0, 16}, RemoteAddr: addr, RKey: key}))
	check(t, k.b.PostRecv(2, Range{}))
	addr, key = at(8192)
	check(t, k.a.Post(Request{ID: 3, Op: RDMAWriteImm, Flags: Signaled, Local: Range{k.mr, 0, 7}, More: Range{k.mr, 11, 4}, Imm: 77, RemoteAddr: addr, RKey: key}))
	got := k.await(t, 3)
	if c := got[2]; c.Status != 0 || !c.Recv || !c.HasImm || c.Imm != 77 || c.Len != 11 {
		t.Errorf("write with immediate: %+v", c)
	}
	if s := string(k.mem[8192 : 8192+11]); s != "written"+string(k.mem[11:15]) {
		t.Errorf("gathered %q", s)
	}
	addr, key = at(4096)
	check(t, k.b.Post(Request{ID: 4, Op: RDMARead, Flags: Signaled | Fence, Local: Range{k.mr, 12288, 16}, RemoteAddr: addr, RKey: key}))
	if c := k.await(t, 1)[4]; c.Status != 0 {
		t.Errorf("read: %v", c.Status)
	}
	for _, off := range []int{4096, 12288} {
		if !bytes.Equal(k.mem[off:off+16], k.mem[:16]) {
			t.Errorf("at %d: %q", off, k.mem[off:off+16])
		}
	}
	// Memory that is not registered cannot be accessed, and the queue pair fails.
	check(t, k.a.Post(Request{ID: 5, Op: RDMAWrite, Flags: Signaled, Local: Range{k.mr, 0, 16}, RemoteAddr: addr, RKey: key ^ 0x5a5a00}))
	if c := k.await(t, 1)[5]; c.Status == 0 {
		t.Error("wrote with a wrong key")
	}
}

func TestSharedReceiveQueue(t *testing.T) {
	var s *SRQ
	k := newBench(t, func(pd *PD) *SRQ {
		s = need[*SRQ](t)(pd.NewSRQ(8))
		t.Cleanup(func() { check(t, s.Close()) })
		return s
	})
	check(t, s.PostRecv(1, Range{k.mr, 4096, 64}))
	check(t, s.PostRecv(2, Range{k.mr, 8192, 64}))
	check(t, k.a.Post(Request{ID: 11, Op: Send, Flags: Signaled, Local: Range{k.mr, 0, 10}}))
	check(t, k.b.Post(Request{ID: 12, Op: Send, Flags: Signaled, Local: Range{k.mr, 0, 20}}))
	got := k.await(t, 4)
	if got[1].Len+got[2].Len != 30 || got[1].QPN == got[2].QPN {
		t.Errorf("%+v", got)
	}
}

// TestFlush checks that all requests posted to a queue pair that fails complete with Flushed.
func TestFlush(t *testing.T) {
	k := newBench(t, nil)
	for id := range uint64(5) {
		check(t, k.b.PostRecv(id, Range{k.mr, 0, 64}))
	}
	check(t, k.b.Fail())
	for id, c := range k.await(t, 5) {
		if c.Status != Flushed {
			t.Errorf("%d: %v", id, c.Status)
		}
	}
}

// TestFork checks that registered memory stays unchanged after a child has been started, whatever
// the child does.
func TestFork(t *testing.T) {
	k := newBench(t, nil)
	copy(k.mem, "before")
	check(t, k.b.PostRecv(1, Range{k.mr, 4096, 64}))
	if err := exec.Command("true").Run(); err != nil {
		t.Fatal(err)
	}
	copy(k.mem, "after!")
	check(t, k.a.Post(Request{ID: 2, Op: Send, Flags: Signaled, Local: Range{k.mr, 0, 6}}))
	k.await(t, 2)
	if s := string(k.mem[4096 : 4096+6]); s != "after!" {
		t.Errorf("got %q", s)
	}
}

// TestPortDown checks that an asynchronous event reports that a port went down, on a device that is
// made for the test.
func TestPortDown(t *testing.T) {
	if os.Getenv("ZIPPER_VERBS_ADDRESS") == "" || os.Getuid() != 0 {
		t.Skip("makes and removes a device: only in scripts/verbs-lab")
	}
	run := func(args ...string) {
		t.Helper()
		if out, err := exec.Command(args[0], args[1:]...).CombinedOutput(); err != nil {
			t.Fatalf("%v: %v %s", args, err, out)
		}
	}
	lo, err := net.InterfaceByName("lo")
	if err != nil {
		t.Fatal(err)
	}
	run("rdma", "link", "add", "rxetest", "type", "rxe", "netdev", lo.Name)
	defer run("rdma", "link", "delete", "rxetest")
	x, err := Open("rxetest")
	if err != nil {
		t.Fatal(err)
	}
	defer x.Close()
	run("ip", "link", "set", "lo", "down")
	defer run("ip", "link", "set", "lo", "up")
	for end := time.Now().Add(20 * time.Second); time.Now().Before(end); {
		unix.Poll([]unix.PollFd{{Fd: int32(x.AsyncFD()), Events: unix.POLLIN}}, 1000)
		e, ok, err := x.Async()
		if err != nil {
			t.Fatal(err)
		}
		if ok && e.Type == PortError {
			if e.Port != 1 || e.Type.String() == "" {
				t.Errorf("%+v", e)
			}
			return
		}
	}
	t.Error("no event")
}
