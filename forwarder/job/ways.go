package job

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/leidenzipper/zipper/forwarder/action"
	"github.com/leidenzipper/zipper/internal/wire"
)

// The kernel may forward connections between ranks, past this forwarder:
//
//  1. When the job starts, or a rank comes back, the rank is offered ways (offer).
//  2. A rank that exchanges much with another one asks for a way to it (ask).
//  3. The kernel opens a way from the host of the rank that dials to the address of the other one: a
//     door, which is a port of this host. One request to the kernel is under way at a time, and
//     those that come meanwhile are the next one.
//  4. The rank that dials is told the address of the door (Way). It may fail to connect; then either
//     rank asks again later.
//  5. A door is needed only while ranks connect, and a connection goes on without it. So it is closed
//     doorTime after a rank was last told its address, and not earlier. Further requests wait in a
//     queue while the job has maxDoors. Thus the number of ports does not depend on the number of
//     pairs.
//
// All frames are relayed over this forwarder while ranks have no connection.

// ways are the connections between ranks that the kernel forwards, or is asked to forward.
type ways struct {
	*core
	ranks *ranks
	begun time.Time           // begun is when the first rank was offered ways.
	ends  map[uint32]endpoint // ends has the addresses of the ranks that have a link here.
	asks  map[uint32]count    // asks counts the recent requests of each rank.
	doors []*door             // doors are those that are open, and those that the kernel is asked to open.
	next  []*door             // next has the doors of the next request to the kernel.
	// queue has the pairs of ranks that wait for one of maxDoors to be closed, the first one first.
	queue []pair
	// asked has the doors of the request to the kernel that is under way; nil: none is.
	asked  []*door
	moved  map[uint32]wire.Moved // moved has the last report of each rank.
	given  int                   // given is the number of Ways that ranks were sent.
	since  time.Time             // since is when the first of them was sent.
	unused bool                  // unused says that no traffic over ways was reported for unusedTime.
	timed  bool                  // timed says that the timer Doors is armed.
	warned bool                  // warned says that a failure of the kernel has been logged.
}

// endpoint has the addresses of a rank.
type endpoint struct {
	instance uint64
	// inside is the address at which the rank accepts connections that the kernel forwards;
	// invalid: none.
	inside netip.AddrPort
	home   netip.Addr // home is this host's address on the rank's link; invalid: unknown.
	from   netip.Addr // from is the address from which the rank's link comes; invalid: unknown.
}

// door is a way that the kernel has opened, or is asked to open.
type door struct {
	way   Way
	at    netip.AddrPort // at is the address of the door; invalid: it is not open yet.
	to    uint32         // to is the rank to which the way leads.
	waits []uint32       // waits has the ranks that are told the address once the door is open.
	used  time.Time      // used is when a rank was last told the address.
}

// pair is a pair of ranks of which one has asked for a way, lower first.
type pair struct{ low, high uint32 }

// allowed reports whether the kernel may forward connections for the job. Over several hops it may
// not: a forwarder knows no address at which another network's ranks reach it.
func (w *ways) allowed() bool {
	return w.cfg.Ways && !w.cfg.Classic && !w.ranks.links.several() && w.ranks.layout.Version >= wire.WaysSince
}

// offer records the addresses of rank v, which has the connection c, and tells the rank that it may
// ask for ways.
func (w *ways) offer(v uint32, c action.Conn, e endpoint) {
	if !w.allowed() {
		return
	}
	if w.ends == nil {
		w.ends, w.asks, w.begun = map[uint32]endpoint{}, map[uint32]count{}, w.now
	}
	w.ends[v] = e
	if e.home.IsValid() {
		w.do(action.Send{Conn: c, Frame: frame(wire.TypeOffer, nil)})
	}
}

// ask handles the request of the rank with connection c for a way between it and rank v. It ignores
// a request that cannot be met, or of a rank that asks too often: the rank goes on without the way.
func (w *ways) ask(c action.Conn, v uint32) {
	m := w.ranks.members[c]
	if m == nil || m.zipper >= 0 || w.state != Running || !w.allowed() || !w.mayAsk(m.rank) {
		return
	}
	if x := (pair{min(m.rank, v), max(m.rank, v)}); !w.serve(x) && len(w.queue) < maxQueue && !slices.Contains(w.queue, x) {
		w.queue = append(w.queue, x)
	}
	w.request()
}

// serve tells the address of a door to the rank of the pair that dials, or adds a door to the next
// request to the kernel. It returns false if the pair must wait because the job has maxDoors. A
// pair that cannot be connected needs nothing.
func (w *ways) serve(x pair) bool {
	from, to, way, ok := w.between(x.low, x.high)
	if !ok {
		return true
	}
	d := w.find(way, to)
	switch {
	case d == nil && len(w.doors) >= maxDoors:
		return false
	case d == nil:
		d = &door{way: way, to: to}
		w.doors, w.next = append(w.doors, d), append(w.next, d)
	case d.open():
		w.tell(from, d)
		return true
	}
	if !slices.Contains(d.waits, from) {
		d.waits = append(d.waits, from)
	}
	return true
}

// serveQueue serves the pairs in the queue that need not wait any more.
func (w *ways) serveQueue() {
	queue := w.queue
	w.queue = nil
	for _, x := range queue {
		if !w.serve(x) {
			w.queue = append(w.queue, x)
		}
	}
	w.request()
}

// mayAsk counts a request of rank v, and reports whether its requests are few.
func (w *ways) mayAsk(v uint32) bool {
	n := w.asks[v]
	if w.now.Sub(n.since) > askTime {
		n = count{since: w.now}
	}
	n.n++
	w.asks[v] = n
	return n.n <= maxAsks
}

// between returns the way between two ranks, and which of them dials. ok is false if they are in
// the same cluster, have no link here, or cannot be connected.
func (w *ways) between(x, y uint32) (from, to uint32, way Way, ok bool) {
	r := w.ranks
	if int64(max(x, y)) >= int64(len(r.routes)) || r.clusterOf[x] == r.clusterOf[y] || r.routes[x] == 0 || r.routes[y] == 0 {
		return 0, 0, way, false
	}
	for _, pair := range [][2]uint32{{max(x, y), min(x, y)}, {min(x, y), max(x, y)}} {
		dials, listens := w.ends[pair[0]], w.ends[pair[1]]
		// A way that begins on the loopback interface must end there, and no other may.
		if dials.home.IsValid() && listens.inside.IsValid() && dials.home.Is4() == listens.inside.Addr().Is4() &&
			dials.home.IsLoopback() == listens.inside.Addr().IsLoopback() {
			return pair[0], pair[1], Way{From: dials.from, At: dials.home, To: listens.inside}, true
		}
	}
	return 0, 0, way, false
}

// find returns the door of a way to a rank, or nil if the kernel has not been asked for it.
func (w *ways) find(way Way, to uint32) *door {
	if i := slices.IndexFunc(w.doors, func(d *door) bool { return d.way == way && d.to == to }); i >= 0 {
		return w.doors[i]
	}
	return nil
}

// request asks the kernel to open the next doors, unless a request is under way.
func (w *ways) request() {
	if w.asked != nil || len(w.next) == 0 {
		return
	}
	w.asked, w.next = w.next, nil
	o := OpenWays{}
	for _, d := range w.asked {
		o.Ways = append(o.Ways, d.way)
	}
	w.do(o)
}

// tell sends rank v the address of a door that is open.
func (w *ways) tell(v uint32, d *door) {
	d.used = w.now
	if c := w.ranks.routes[v]; c != 0 && w.state == Running {
		if w.given++; w.since.IsZero() {
			w.since = w.now
		}
		w.do(action.Send{Conn: c, Frame: frame(wire.TypeWay, &wire.Way{Rank: d.to, Instance: w.ends[d.to].instance,
			Address: d.at.String()})})
	}
}

// opened handles the kernel's answer to the request that is under way. Ranks that wait for a way
// that could not be opened go on without it.
func (w *ways) opened(e *Opened) {
	asked := w.asked
	if w.asked = nil; len(e.At) != len(asked) {
		if len(e.At) > 0 {
			e.Err = errors.Join(e.Err, fmt.Errorf("%d addresses of %d ways", len(e.At), len(asked)))
		}
		e.At = make([]netip.AddrPort, len(asked))
	}
	if e.Err != nil && !w.warned {
		w.warned = true
		w.log(zapcore.WarnLevel, "the kernel does not forward some connections between ranks of a job, whose messages are relayed (reported once)",
			zap.Error(e.Err))
	}
	for i, d := range asked {
		d.at = e.At[i]
		for _, v := range d.waits {
			if d.open() {
				w.tell(v, d)
			}
		}
		d.waits = nil
	}
	w.doors = slices.DeleteFunc(w.doors, func(d *door) bool { return !d.open() && slices.Contains(asked, d) })
	if w.state == Running {
		w.serveQueue()
		w.await()
	}
}

// await arms the timer Doors, if doors are open and it is not armed, for the time at which the
// first of them must be closed.
func (w *ways) await() {
	after := doorTime + 1
	for _, d := range w.doors {
		if d.open() {
			after = min(after, doorTime-w.now.Sub(d.used))
		}
	}
	if !w.timed && after <= doorTime {
		w.timed = true
		w.arm(action.Timer{Kind: action.Doors}, max(after, doorRest))
	}
}

// expire closes the doors that have not been used for doorTime.
func (w *ways) expire() {
	w.timed = false
	if w.state != Running {
		return
	}
	w.close(func(d *door) bool { return d.open() && w.now.Sub(d.used) >= doorTime }, false)
	w.serveQueue()
	w.await()
	w.reportUnused()
}

// reportUnused logs once that ranks cannot use ways, if no rank has reported traffic over any for
// unusedTime.
func (w *ways) reportUnused() {
	if w.unused || len(w.moved) > 0 || w.given < manyWays || w.now.Sub(w.since) < unusedTime {
		return
	}
	w.unused = true
	w.log(zapcore.WarnLevel, unusedText, zap.Int("ports", w.given))
}

// unusedText says what must be true for ranks to use ways.
const unusedText = "no rank of a job has reported traffic over the ports that the kernel forwards: " +
	"its messages are relayed. Firewalls must accept forwarded connections on this node (nft: ct status " +
	"dnat accept), and those to ephemeral ports on the nodes of ranks (docs/howto/direct-links.md)"

// open reports whether the kernel has opened the door.
func (d *door) open() bool { return d.at.IsValid() }

// close has the kernel close the open doors for which chosen returns true. last says that the event
// Closed must report when that is done.
func (w *ways) close(chosen func(d *door) bool, last bool) {
	c := CloseWays{Last: last}
	w.doors = slices.DeleteFunc(w.doors, func(d *door) bool {
		if !chosen(d) {
			return false
		}
		c.At = append(c.At, d.at)
		return true
	})
	if len(c.At) > 0 {
		w.do(c)
	}
}

// finish has the kernel close all doors, because the job has ended, and reports whether there is
// nothing to wait for. It must be called again after the answer to a request that is under way.
func (w *ways) finish() (over bool) {
	if w.timed {
		w.timed = false
		w.disarm(action.Timer{Kind: action.Doors})
	}
	w.doors = slices.DeleteFunc(w.doors, func(d *door) bool { return slices.Contains(w.next, d) })
	if w.next, w.queue = nil, nil; w.asked != nil {
		return false
	}
	if len(w.doors) == 0 {
		return true
	}
	w.close((*door).open, true)
	return false
}

// moves records how much the rank with connection c has sent over ways so far. Reports are claims
// of ranks about their own job, for statistics; the amounts only grow. Of a claim that no network
// can carry since the job has run, only that much is recorded.
func (w *ways) moves(c action.Conn, sent wire.Moved) {
	m := w.ranks.members[c]
	if m == nil || m.zipper >= 0 || !w.allowed() {
		return
	}
	if w.moved == nil {
		w.moved = map[uint32]wire.Moved{}
	}
	w.unused = false
	most := uint64(max(w.now.Sub(w.begun), 0)) // in nanoseconds
	last := w.moved[m.rank]
	w.moved[m.rank] = wire.Moved{Messages: max(last.Messages, min(sent.Messages, most*fastestMessages)),
		Bytes: max(last.Bytes, min(sent.Bytes, most*fastestBytes))}
}

// total returns the sum of all ranks' traffic over ways, or the largest number if it is larger.
func (w *ways) total() (sum wire.Moved) {
	for _, m := range w.moved {
		sum = sum.Plus(m)
	}
	return sum
}

// count returns the number of open doors.
func (w *ways) count() (n int) {
	for _, d := range w.doors {
		if d.open() {
			n++
		}
	}
	return n
}
