package engine

import (
	"bytes"
	"slices"
	"testing"

	"github.com/leidenzipper/zipper/collectives"
	"github.com/leidenzipper/zipper/internal/rma"
	"github.com/leidenzipper/zipper/internal/wire"
)

func onLoss(_ int, cfg *Config) { cfg.OnLoss = true }

// kill ends the processes of a cluster. The bytes that they have written still arrive.
func (f *fabric) kill(cluster int) {
	first, end := f.engines[0].world.Ranks(cluster)
	for r := first; r < end; r++ {
		f.relay(r, 0)
		f.dead[r], f.up[r], f.down[r] = true, nil, nil
	}
	f.lost++
}

// tell sends a rank the word that a cluster is lost.
func (f *fabric) tell(rank, cluster int) {
	f.states[rank]++
	x := wire.Lost{Number: f.states[rank], Cluster: uint16(cluster), Epoch: f.states[rank],
		Reason: "cluster " + string(rune('a'+cluster)) + " is lost: test"}
	f.down[rank] = wire.AppendFrame(f.down[rank], wire.Control(wire.TypeLost), &x)
}

// lose ends the processes of a cluster and tells all others.
func (f *fabric) lose(cluster int) {
	f.kill(cluster)
	for r := range f.engines {
		if !f.dead[r] {
			f.tell(r, cluster)
		}
	}
}

// wantCode checks that an operation has ended with a code.
func wantCode(t testing.TB, what string, c *Cell, want Code) {
	t.Helper()
	if !c.Done() || Code(c.Error) != want || c.Cancelled != 0 {
		t.Errorf("%s: done %v, error %v, cancelled %d; want %v", what, c.Done(), Code(c.Error), c.Cancelled, want)
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// TestLossEndsOperations checks that a loss ends the operations with ranks of the lost cluster, in
// whatever state they are, and no others. A message that had arrived is received.
func TestLossEndsOperations(t *testing.T) {
	f := newFabric(t, []int{1, 1, 1}, Limits{Eager: 16, Segment: 1000, DataWindow: 4000}, onLoss)
	c := f.world(1)
	e := f.engines[0]
	var arrived, announced, sync, sending, receiving, posted, other, unposted Cell
	must(t, f.engines[2].Isend(c[2], KindP2P, []byte("early"), 0, 1, false, &arrived))
	big := bytes.Repeat([]byte("x"), 10000)
	must(t, e.Isend(c[0], KindP2P, big, 2, 2, false, &announced))
	must(t, e.Isend(c[0], KindP2P, []byte("s"), 2, 3, true, &sync))
	must(t, e.Isend(c[0], KindP2P, big, 2, 4, false, &sending))
	must(t, e.Irecv(c[0], KindP2P, make([]byte, 10000), 2, 5, &receiving))
	must(t, e.Irecv(c[0], KindP2P, make([]byte, 10), 2, 6, &posted))
	must(t, e.Irecv(c[0], KindP2P, make([]byte, 10), 1, 7, &other))
	must(t, f.engines[2].Irecv(c[2], KindP2P, make([]byte, 10000), 0, 4, new(Cell)))
	must(t, f.engines[2].Isend(c[2], KindP2P, big, 0, 5, false, new(Cell)))
	must(t, f.engines[2].Isend(c[2], KindP2P, big, 0, 8, false, new(Cell)))
	for range 3 { // both transfers begin, and end later
		for r, e := range f.engines {
			e.Progress(0)
			f.relay(r, 2)
		}
	}
	if sending.Done() || receiving.Done() {
		t.Fatal("the transfers are over before the loss")
	}
	f.lose(2)
	f.settle()
	for what, c := range map[string]*Cell{"announced": &announced, "synchronous": &sync, "sending": &sending,
		"receiving": &receiving, "posted": &posted} {
		wantCode(t, what, c, ErrProcFailed)
	}
	if other.Done() {
		t.Error("a receive from a living rank has ended")
	}
	var first, lost, send Cell
	buf := make([]byte, 10)
	must(t, e.Irecv(c[0], KindP2P, buf, 2, 1, &first))
	wantCode(t, "message that had arrived", &first, OK)
	if string(buf[:first.Bytes]) != "early" {
		t.Errorf("%q", buf)
	}
	must(t, e.Irecv(c[0], KindP2P, buf, 2, 8, &lost))
	wantCode(t, "receive of a message that was announced", &lost, ErrProcFailed)
	must(t, e.Isend(c[0], KindP2P, []byte("y"), 2, 1, false, &send))
	wantCode(t, "new send", &send, ErrProcFailed)
	if err := e.Iprobe(c[0], 2, AnyTag, &unposted); CodeOf(err) != ErrProcFailed {
		t.Errorf("probe: %v", err)
	}
	must(t, f.engines[1].Isend(c[1], KindP2P, []byte("z"), 0, 7, false, &send))
	f.settle()
	wantCode(t, "receive from a living rank", &other, OK)
	if got := e.Failed(c[0]); !slices.Equal(got, []int32{2}) {
		t.Errorf("failed: %v", got)
	}
}

// TestReceiveFromAnySourceWaitsForAcknowledgement checks that a receive from any source is told of
// a loss, keeps its place, and goes on when the loss is acknowledged.
func TestReceiveFromAnySourceWaitsForAcknowledgement(t *testing.T) {
	f := newFabric(t, []int{2, 1, 1, 1}, Limits{}, onLoss)
	c := f.world(1)
	e := f.engines[0]
	var first, second, local Cell
	a, b := make([]byte, 10), make([]byte, 10)
	must(t, e.Irecv(c[0], KindP2P, a, AnySource, 1, &first))
	must(t, e.Irecv(c[0], KindP2P, b, AnySource, 1, &second))
	must(t, e.Irecv(c[0], KindP2P, make([]byte, 10), AnySource, 2, &local))
	f.lose(3)
	f.settle()
	wantCode(t, "first", &first, ErrProcFailedPending)
	wantCode(t, "second", &second, ErrProcFailedPending)
	must(t, e.Resume(&first))
	wantCode(t, "first, not acknowledged", &first, ErrProcFailedPending)
	var probed Cell
	if err := e.Iprobe(c[0], AnySource, 3, &probed); CodeOf(err) != ErrProcFailed {
		t.Errorf("probe: %v", err)
	}
	var sent Cell
	must(t, f.engines[2].Isend(c[2], KindP2P, []byte("one"), 0, 1, false, &sent)) // arrives meanwhile
	f.natives[1].send(1, 0, 2, []byte("local"))
	f.settle()
	if n := e.AckFailed(c[0], 0); n != 0 {
		t.Errorf("%d ranks are acknowledged", n)
	}
	if n := e.AckFailed(c[0], 1); n != 1 {
		t.Errorf("%d ranks are acknowledged", n)
	}
	must(t, e.Resume(&second))
	if second.Done() {
		t.Error("the second receive is over")
	}
	must(t, f.engines[2].Isend(c[2], KindP2P, []byte("two"), 0, 1, false, new(Cell)))
	f.settle()
	must(t, e.Resume(&first))
	wantCode(t, "first", &first, OK)
	wantCode(t, "second", &second, OK)
	if string(a[:3]) != "one" || string(b[:3]) != "two" {
		t.Errorf("%q, %q", a, b)
	}
	must(t, e.Resume(&local))
	wantCode(t, "local", &local, OK)
	if err := e.Resume(&local); CodeOf(err) != ErrArg {
		t.Errorf("resume of a receive that is over: %v", err)
	}
	var next, cancelled Cell
	must(t, e.Irecv(c[0], KindP2P, a, AnySource, 1, &next))
	if next.Done() {
		t.Error("a receive is told of a loss that is acknowledged")
	}
	f.lose(2)
	f.settle()
	wantCode(t, "next", &next, ErrProcFailedPending)
	must(t, e.Cancel(&next))
	if next.Cancelled != 1 || next.Error != 0 || !next.Done() {
		t.Errorf("a receive that waits for an acknowledgement is not cancelled: %+v", next)
	}
	must(t, e.Irecv(c[0], KindP2P, a, AnySource, 1, &cancelled))
	wantCode(t, "posted after the loss", &cancelled, ErrProcFailedPending)
	if got := e.Failed(c[0]); !slices.Equal(got, []int32{4, 3}) {
		t.Errorf("failed: %v, want them in the order of the losses", got)
	}
}

// TestRevokeEndsOperations checks that a revocation reaches all, ends what no message has matched,
// and gives back the credit of messages that nobody will receive.
func TestRevokeEndsOperations(t *testing.T) {
	f := newFabric(t, []int{2, 1, 1}, Limits{Eager: 100, EagerWindow: 1000, Segment: 1000, DataWindow: 4000}, onLoss)
	c, other := f.world(1), f.world(2)
	big := bytes.Repeat([]byte("x"), 10000)
	var posted, wild, local, announced, sync, matched, collective Cell
	must(t, f.engines[0].Irecv(c[0], KindP2P, make([]byte, 10), 2, 1, &posted))
	must(t, f.engines[0].Irecv(c[0], KindP2P, make([]byte, 10), AnySource, 1, &wild))
	if !f.engines[0].Shadowed(c[0], 1, 1) {
		t.Fatal("the local receive is not shadowed")
	}
	must(t, f.engines[0].Irecv(c[0], KindP2P, make([]byte, 10), 1, 1, &local))
	must(t, f.engines[2].Isend(c[2], KindP2P, big, 0, 5, false, &announced))
	must(t, f.engines[2].Isend(c[2], KindP2P, []byte("s"), 0, 5, true, &sync))
	must(t, f.engines[3].Isend(c[3], KindP2P, big, 0, 6, false, &matched))
	got := make([]byte, len(big))
	var taken Cell
	must(t, f.engines[0].Irecv(c[0], KindP2P, got, 3, 6, &taken))
	must(t, f.engines[1].Collective(c[1], newCollCase(0, 4, 1, 0).args[1], &collective))
	for range 12 {
		must(t, f.engines[2].Isend(c[2], KindP2P, make([]byte, 80), 1, 9, false, new(Cell)))
	}
	f.engines[3].Progress(0)
	f.relay(3, 0)
	f.engines[0].Progress(0) // it has matched the message of 3
	must(t, f.engines[1].Revoke(c[1]))
	must(t, f.engines[1].Revoke(c[1]))
	f.settle()
	for what, x := range map[string]*Cell{"posted": &posted, "wild": &wild, "local": &local, "announced": &announced,
		"synchronous": &sync, "collective": &collective} {
		wantCode(t, what, x, ErrRevoked)
	}
	wantCode(t, "matched send", &matched, OK)
	wantCode(t, "matched receive", &taken, OK)
	if !bytes.Equal(got, big) {
		t.Error("the message that was matched is damaged")
	}
	for r, e := range f.engines {
		if !e.Revoked(c[r]) || e.Revoked(other[r]) {
			t.Errorf("rank %d: revoked %v, the other communicator %v", r, e.Revoked(c[r]), e.Revoked(other[r]))
		}
		var s, v Cell
		must(t, e.Isend(c[r], KindP2P, []byte("n"), (r+2)%4, 1, false, &s))
		must(t, e.Irecv(c[r], KindP2P, make([]byte, 1), (r+2)%4, 1, &v))
		wantCode(t, "new send", &s, ErrRevoked)
		wantCode(t, "new receive", &v, ErrRevoked)
		if err := e.Iprobe(c[r], AnySource, AnyTag, new(Cell)); CodeOf(err) != ErrRevoked {
			t.Errorf("probe: %v", err)
		}
		must(t, e.DropComm(c[r]))
	}
	f.edit = func(h *wire.Header, frame []byte) [][]byte {
		if h.Type == wire.TypeRTS {
			t.Error("a short message is announced: there is no credit")
		}
		return [][]byte{frame}
	}
	for i := range 40 { // more than the window
		var s, v Cell
		must(t, f.engines[2].Isend(other[2], KindP2P, make([]byte, 80), 1, i, false, &s))
		must(t, f.engines[1].Irecv(other[1], KindP2P, make([]byte, 80), 2, i, &v))
		f.settle()
		wantCode(t, "message on another communicator", &v, OK)
	}
}

// TestRevokeFollowers checks that a revocation ends the operations on the communicators that follow
// the revoked one, also on those that follow it only later, and on no others.
func TestRevokeFollowers(t *testing.T) {
	f := newFabric(t, []int{1, 1, 1}, Limits{Eager: 100, EagerWindow: 1000, Segment: 1000, DataWindow: 4000}, onLoss)
	leader, follower, other := f.world(1), f.world(2), f.world(3)
	for r, e := range f.engines {
		Follow(e, follower[r], leader[r])
	}
	var posted, announced, barrier, free Cell
	must(t, f.engines[0].Irecv(follower[0], KindP2P, make([]byte, 10), 1, 1, &posted))
	must(t, f.engines[0].Isend(follower[0], KindP2P, make([]byte, 10000), 1, 2, false, &announced))
	must(t, f.engines[0].Collective(follower[0], Coll{Args: collectives.Args{Op: collectives.OpBarrier}}, &barrier))
	must(t, f.engines[0].Irecv(other[0], KindP2P, make([]byte, 10), 1, 1, &free))
	f.settle()
	must(t, f.engines[2].Revoke(leader[2]))
	f.settle()
	for what, x := range map[string]*Cell{"receive": &posted, "send": &announced, "barrier": &barrier} {
		wantCode(t, what, x, ErrRevoked)
	}
	late := f.world(4)
	for r, e := range f.engines {
		Follow(e, late[r], leader[r])
		if !e.Revoked(follower[r]) || !e.Revoked(late[r]) || e.Revoked(other[r]) {
			t.Errorf("rank %d: revoked %v, the late follower %v, the other communicator %v", r, e.Revoked(follower[r]),
				e.Revoked(late[r]), e.Revoked(other[r]))
		}
	}
	if free.Done() {
		t.Error("a receive on another communicator has ended")
	}
}

// TestRevokeBeforeTheCommunicator checks that a revocation that arrives before its communicator is
// added revokes it then, and that messages for a revoked communicator that was freed use up
// nothing.
func TestRevokeBeforeTheCommunicator(t *testing.T) {
	f := newFabric(t, []int{1, 1}, Limits{Orphans: 2, EagerWindow: 1000}, onLoss)
	a := f.comm(0, 7, nil)
	must(t, f.engines[0].Revoke(a))
	f.settle()
	b := f.comm(1, 7, nil)
	if !f.engines[1].Revoked(b) {
		t.Fatal("the communicator is not revoked")
	}
	a, b = f.comm(0, 8, nil), f.comm(1, 8, nil)
	must(t, f.engines[0].Revoke(a))
	must(t, f.engines[0].DropComm(a))
	var last Cell
	for i := range 10 {
		last = Cell{}
		must(t, f.engines[1].Isend(b, KindP2P, make([]byte, 150), 0, i, false, &last))
		f.engines[1].links.Flush()
		f.relay(1, 0)
		f.engines[0].Progress(0)
		f.relay(0, 0)
		f.engines[1].links.Step() // takes credit, but the revocation is not served
	}
	f.settle()
	if !last.Done() {
		t.Error("the credit of messages for a freed communicator does not come back")
	}
	if err := f.engines[0].Err(); err != nil {
		t.Error(err)
	}
}

// TestCollectivesAfterALossUseNoCredit checks that messages of collectives that nobody will
// receive, because the receiver knows of a loss and the sender does not yet, use up no credit.
func TestCollectivesAfterALossUseNoCredit(t *testing.T) {
	f := newFabric(t, []int{1, 1, 1}, Limits{EagerWindow: 1000}, onLoss)
	c, other := f.world(1), f.world(2)
	for i := range 20 {
		if i == 11 {
			f.kill(2)
			f.tell(0, 2)
		}
		bcast := collectives.Args{Op: collectives.OpBcast, Recv: make([]byte, 80), Root: 1}
		must(t, f.engines[1].Collective(c[1], Coll{Args: bcast}, new(Cell)))
		f.settle()
	}
	f.edit = func(h *wire.Header, frame []byte) [][]byte {
		if h.Type == wire.TypeRTS {
			t.Error("a short message is announced: there is no credit")
		}
		return [][]byte{frame}
	}
	for range 5 {
		must(t, f.engines[1].Isend(other[1], KindP2P, make([]byte, 80), 0, 1, false, new(Cell)))
	}
	f.settle()
}

// TestLossInWindow checks that calls on a window end when a member is lost, also those to other
// members, that a message of the lost member that was arriving does no harm, and that the window
// can be freed.
func TestLossInWindow(t *testing.T) {
	f := newFabric(t, []int{1, 1, 1}, Limits{Eager: -1, Segment: 500, DataWindow: 1000}, onLoss)
	w, _ := windowed(t, f, 1000)
	lock := func(at, target int) *Cell {
		cell := new(Cell)
		must(t, w[at].Call(cell, func(d *rma.Node, token any) error { return d.Lock(target, rma.Exclusive|rma.Awaited, token) }))
		return cell
	}
	held := lock(1, 0)
	settled(t, f, "lock", held)
	waits := lock(0, 0)
	f.settle()
	if waits.Done() {
		t.Fatal("the lock is granted twice")
	}
	must(t, w[2].Call(new(Cell), func(d *rma.Node, token any) error { return d.Lock(0, 0, token) }))
	for f.engines[2].Progress(0) > 0 { // the message is announced, and no more
	}
	f.relay(2, 1)
	f.engines[0].Progress(0)
	f.lose(2)
	f.settle()
	wantCode(t, "lock that waited", waits, ErrProcFailed)
	wantCode(t, "new lock", lock(0, 1), ErrProcFailed)
	if left, err := w[0].Operate(rma.Operation{Verb: rma.Put, Target: 1, Data: flat(make([]byte, 10)),
		There: flat(make([]byte, 10)).Layout}, nil); left != 0 || err != nil {
		t.Errorf("put: %d, %v", left, err)
	}
	if err := w[0].Failed(); CodeOf(err) != ErrProcFailed {
		t.Errorf("the window has %v", err)
	}
	if err := f.engines[0].Err(); err != nil {
		t.Fatal(err)
	}
	must(t, w[0].Drop())
	must(t, w[1].Drop())
	f.settle()
}

// TestWindowIsFreedWhileMessageArrives checks that a window with a lost member is freed only when
// the messages of the other members that have begun to arrive have been received. These members may
// send until they know of the loss.
func TestWindowIsFreedWhileMessageArrives(t *testing.T) {
	var f *fabric
	serve := func(rank int, cfg *Config) {
		if cfg.OnLoss = true; rank == 0 {
			cfg.Leave = func() bool { // while the engine waits, the others work
				f.relay(0, 0)
				f.engines[1].Progress(0)
				f.relay(1, 0)
				return false
			}
		}
	}
	f = newFabric(t, []int{1, 1, 1}, Limits{Eager: -1, Segment: 500, DataWindow: 1000}, serve)
	w, _ := windowed(t, f, 1000)
	must(t, w[1].Call(new(Cell), func(n *rma.Node, token any) error { return n.Lock(0, 0, token) }))
	for f.engines[1].Progress(0) > 0 { // the message is announced, and no more
	}
	f.relay(1, 0)
	f.lose(2)
	for f.engines[0].Progress(0) > 0 {
	}
	must(t, w[0].Drop())
	f.settle()
	must(t, w[1].Drop())
	f.settle()
}
