package kernel

import (
	"context"
	"fmt"
	"io"
	"net/netip"
	"time"

	"golang.org/x/sys/unix"

	"github.com/leidenzipper/zipper/internal/transport"
)

// Path describes the network between two places, for both directions.
type Path struct {
	Rate   int64         // bytes per second; 0 if unlimited
	Delay  time.Duration // time from the departure of the last byte to its arrival
	Jitter time.Duration // largest additional delay; bytes stay in order
	Buffer int           // bytes in flight or unread beyond which a writer waits
	Pieces bool          // whether reads and writes now and then move only a part

	// Out and In replace Rate, Delay, Jitter and Buffer if they are set. Out is the way from the
	// dialling end, In the way to it.
	Out, In *Way
}

// End is one end of a simulated TCP connection.
type End struct {
	k       *Kernel     // kernel of the connection
	p       *Process    // process to which this end belongs
	fd      int         // number of the descriptor
	self    *descriptor // descriptor, on which threads sleep
	in, out *pipe       // directions to and from this end
	remote  string      // dialled address, or name of the process at the other end
	closed  bool        // this end has been closed by its process
	dead    error       // error of the broken connection, once this end knows of it
}

var (
	_ transport.Narrow    = (*End)(nil)
	_ transport.Distant   = (*End)(nil)
	_ transport.Homed     = (*End)(nil)
	_ transport.Listening = (*End)(nil)
)

// pipe is one direction of a connection.
type pipe struct {
	k       *Kernel       // kernel that delivers the bytes
	path    Path          // network that the bytes pass
	to      *End          // reader
	from    *End          // end of the writer
	free    time.Duration // time at which the line can take more
	last    time.Duration // arrival time of the bytes sent last
	here    []byte        // bytes that have arrived and that the reader has not read
	air     [][]byte      // writes in flight; nil marks the end of the stream
	bytes   int           // number of bytes in air
	eof     bool          // the reader gets the end of the stream after the bytes in here
	stuck   bool          // nothing arrives for a while
	cut     bool          // nothing arrives any more
	muted   bool          // nothing arrives any more, and neither end gets an error
	lostAt  time.Duration // time at which the first bytes were sent that a muted pipe has lost; 0: none were
	corrupt func([]byte)  // changes the next bytes that are sent; nil if none are to change
	unread  []unread      // sizes of the packets in here
	flow
}

// connect creates a connection between processes a and b over path, and returns the end x of a and
// the end y of b. nameA and nameB are the names that the other end's Remote returns.
func (k *Kernel) connect(a, b *Process, path Path, nameA, nameB string) (x, y *End) {
	x = &End{k: k, p: a, remote: nameB}
	y = &End{k: k, p: b, remote: nameA}
	xy, yx := &pipe{k: k, path: path, from: x, to: y}, &pipe{k: k, path: path, from: y, to: x}
	xy.on(path.Out, xy.arrives, xy.takenIn, func() { x.self.changed() })
	yx.on(path.In, yx.arrives, yx.takenIn, func() { y.self.changed() })
	x.in, x.out, y.in, y.out = yx, xy, xy, yx
	for _, e := range []*End{x, y} {
		e.self = &descriptor{readable: e.readable, writable: e.writable,
			closed: func() bool { return e.in.eof || e.dead != nil }, broken: func() bool { return e.dead != nil }}
		e.fd = k.open(e.self)
		e.p.ends = append(e.p.ends, e)
	}
	return x, y
}

func (e *End) readable() bool { return len(e.in.here) > 0 || e.in.eof || e.dead != nil }
func (e *End) writable() bool { return e.out.room() > 0 && !e.out.full || e.dead != nil }

func (q *pipe) room() int {
	if q.way != nil {
		return q.vacant()
	}
	return q.path.Buffer - len(q.here) - q.bytes
}

// some returns how many of n bytes the current read or write moves: n, or now and then fewer if
// Path.Pieces is set.
func (q *pipe) some(n int) int {
	if q.path.Pieces && n > 1 && q.k.Rand.IntN(4) == 0 {
		return 1 + q.k.Rand.IntN(n)
	}
	return n
}

// Path implements transport.Distant: it returns the shortest round-trip time of the connection, on
// a Way also Busy, and whether the time is known.
func (e *End) Path() (p transport.Path, known bool) {
	q := e.out
	if q.way == nil {
		return transport.Path{RoundTrip: 2 * q.path.Delay}, true
	}
	return transport.Path{RoundTrip: q.least, Busy: q.inUse()}, q.least > 0
}

// UseLongPath does nothing, because simulated packets are never lost. It implements
// transport.Distant.
func (e *End) UseLongPath() {}

// TryRead reads up to len(p) bytes that have arrived into p and returns their number. Without any
// the error is transport.ErrAgain, or io.EOF at the end of the stream. It implements
// transport.Link, as do TryWrite, FD, WriteFD, Arm, Remote and Close.
func (e *End) TryRead(p []byte) (int, error) {
	q := e.in
	switch {
	case e.closed:
		return 0, transport.ErrClosed
	case e.dead != nil:
		return 0, e.dead
	case len(q.here) > 0:
		full := q.room() <= 0
		n := copy(p[:q.some(len(p))], q.here)
		q.here = q.here[n:]
		q.taken(n)
		q.k.spendOn(n)
		if q.way != nil {
			q.opened()
			return n, nil
		}
		if full && q.from != nil {
			q.from.self.changed()
		}
		return n, nil
	case q.eof:
		return 0, io.EOF
	}
	q.k.spendOn(0)
	return 0, transport.ErrAgain
}

// TryWrite writes as many of the bytes in bufs as there is room for, with Path.Pieces now and then
// fewer, and returns their number. Without room the error is transport.ErrAgain.
func (e *End) TryWrite(bufs ...[]byte) (int, error) {
	q := e.out
	total := 0
	for _, b := range bufs {
		total += len(b)
	}
	switch {
	case e.closed:
		return 0, transport.ErrClosed
	case e.dead != nil:
		return 0, e.dead
	case total == 0:
		return 0, nil
	case q.room() <= 0 || q.full:
		q.full = q.way != nil
		q.wrote(0, true)
		q.k.spendOn(0)
		return 0, transport.ErrAgain
	}
	n := q.some(min(total, q.room()))
	m := make([]byte, 0, n)
	for _, b := range bufs {
		m = append(m, b[:min(len(b), n-len(m))]...)
	}
	if q.corrupt != nil {
		q.corrupt(m)
		q.corrupt = nil
	}
	q.k.spendOn(n)
	if q.muted && q.lostAt == 0 {
		q.lostAt = q.k.now
	}
	q.send(m)
	q.wrote(n, false)
	return n, nil
}

// backlogAfter is the time for which the line must be taken before a queue counts as a backlog, as
// in transport tcp.
const backlogAfter = 500 * time.Microsecond

// Bottleneck implements transport.Narrow: it returns the rate in bytes per second at which the
// network drains this end's writes while a backlog is queued, or 0 if there is none.
func (e *End) Bottleneck() float64 {
	switch q := e.out; {
	case q.way != nil:
		return q.socket.Bottleneck()
	case q.free > q.k.now+backlogAfter:
		return float64(q.path.Rate)
	}
	return 0
}

// send puts bytes b on their way to the reader; a nil b marks the end of the stream.
func (q *pipe) send(b []byte) {
	if q.way != nil {
		q.sendOn(b)
		return
	}
	k := q.k
	q.air = append(q.air, b)
	q.bytes += len(b)
	q.free = max(q.free, k.now)
	if q.path.Rate > 0 {
		q.free += time.Duration(int64(len(b)) * int64(time.Second) / q.path.Rate)
	}
	arrives := q.free + q.path.Delay
	if j := q.path.Jitter; j > 0 {
		arrives += time.Duration(k.Rand.Int64N(int64(j)))
	}
	q.last = max(q.last, arrives)
	k.plan(q.last, q, 0)
}

func (q *pipe) stale(uint64) bool { return false }
func (q *pipe) due()              { q.land() }

// arrives delivers bytes b to the reader after they have passed the Way of the pipe.
func (q *pipe) arrives(b []byte) {
	q.air = append(q.air, b)
	q.bytes += len(b)
	q.land()
}

// takenIn returns the virtual time at which the reader's machine has processed a packet of n bytes
// that arrives now.
func (q *pipe) takenIn(n int) time.Duration {
	if h := q.to.p.host; h != nil {
		return h.cores().interrupt(q.k.now, n)
	}
	return q.k.now
}

// land makes the earliest write that is in flight readable at the reader's end.
func (q *pipe) land() {
	if q.stuck || len(q.air) == 0 || q.to.dead != nil {
		return
	}
	b := q.air[0]
	q.air = q.air[1:]
	q.bytes -= len(b)
	switch {
	case b == nil:
		q.eof = true
	case q.to.closed: // the reader's system answers with a reset
		q.reset()
		return
	default:
		if len(q.here) == 0 {
			q.here = b
		} else {
			q.here = append(q.here, b...)
		}
		q.landed(len(b))
	}
	q.k.Note(uint64(q.k.now), uint64(q.to.fd), uint64(len(b)))
	q.to.self.changed()
}

// reset makes reads and writes at the writer's end fail, after the delay of the path.
func (q *pipe) reset() {
	q.k.at(q.k.now+q.path.Delay, func() { q.from.fail() })
}

// fail breaks the connection at this end: its reads and writes fail from now on.
func (e *End) fail() {
	if e.closed || e.dead != nil {
		return
	}
	e.dead = unix.ECONNRESET
	e.in.here, e.in.air, e.in.bytes = nil, nil, 0
	e.self.changed()
}

// FD returns the number of the connection's descriptor, which threads poll for reading.
func (e *End) FD() int { return e.fd }

// WriteFD returns the number of the connection's descriptor, which threads poll for writing.
func (e *End) WriteFD() int { return e.fd }

// Arm does nothing and returns false, because a simulated connection needs no preparation before a
// thread polls it.
func (e *End) Arm() bool { return false }

// Remote returns the address that this end has dialled, or the name of the process at the other end
// if this end has not dialled.
func (e *End) Remote() string { return e.remote }

// Close closes this end. Written bytes still arrive, unless received bytes are unread: then the
// connection is reset, as with TCP.
func (e *End) Close() error {
	if e.closed {
		return nil
	}
	e.closed = true
	e.k.Close(e.fd)
	if len(e.in.here) > 0 && e.dead == nil {
		e.out.part()
	} else if e.dead == nil {
		e.out.send(nil)
	}
	e.in.here = nil
	return nil
}

// part breaks the connection at the reader's end only, once the bytes in flight have arrived.
func (q *pipe) part() {
	q.k.at(max(q.last, q.k.now+q.path.Delay), func() { q.to.fail() })
}

// Cut breaks the connection, as a network failure does. This end notices after the time mine, the
// other end after the time other. All bytes in flight are lost.
func (e *End) Cut(mine, other time.Duration) {
	if e.closed {
		return
	}
	e.in.air, e.out.air, e.in.bytes, e.out.bytes = nil, nil, 0, 0
	e.in.pending, e.out.pending = nil, nil
	e.in.stuck, e.out.stuck, e.in.cut, e.out.cut = true, true, true, true
	peer := e.out.to
	e.k.After(mine, func() { e.fail() })
	e.k.After(other, func() { peer.fail() })
}

// Mute makes the network drop all bytes of the connection from now on, in both directions. Neither
// end gets an error.
func (e *End) Mute() {
	if e.closed {
		return
	}
	for _, q := range []*pipe{e.in, e.out} {
		if q.bytes > 0 && q.lostAt == 0 {
			q.lostAt = q.k.now
		}
		q.air, q.bytes, q.pending = nil, 0, nil
		q.stuck, q.cut, q.muted = true, true, true
	}
}

// Unheard implements transport.Listening. It is known only of a muted connection: since when the
// network has dropped bytes of this end.
func (e *End) Unheard() (d time.Duration, known bool) {
	q := e.out
	if !q.muted {
		return 0, false
	}
	if q.lostAt == 0 {
		return 0, true
	}
	return q.k.now - q.lostAt, true
}

// Home implements transport.Homed: it returns the addresses of the hosts of both ends' processes.
func (e *End) Home() (here, there netip.Addr) { return e.p.Address, e.out.to.p.Address }

// Stall holds back all bytes from this end to the other one for the time d, both those in flight
// and those written later. It does nothing if they are held back already.
func (e *End) Stall(d time.Duration) {
	q := e.out
	if q.stuck || e.dead != nil {
		return
	}
	q.stuck = true
	q.k.After(d, func() {
		q.stuck = q.cut
		for n := len(q.air); n > 0; n-- {
			q.land()
		}
		if q.way != nil {
			q.pump()
		}
	})
}

// Corrupt sets a function that is called once with the next bytes that this end writes, and may
// change them.
func (e *End) Corrupt(fn func([]byte)) { e.out.corrupt = fn }

// Open reports whether both ends are open and the connection is intact.
func (e *End) Open() bool {
	return !e.closed && e.dead == nil && !e.in.stuck && !e.out.to.closed && e.out.to.dead == nil
}

// Listener accepts connections for a process.
type Listener struct {
	p    *Process   // process that accepts the connections
	take func(*End) // function that is called with the process's end of each new connection
}

// Listen makes process p accept connections to addr: fn is called with p's end of each one. No
// simulated thread runs during a call of fn, so fn must not sleep.
func (p *Process) Listen(addr string, fn func(*End)) { p.k.places[addr] = &Listener{p, fn} }

// Dial opens a connection to addr over a path, and returns the end of process p. The caller must be
// a thread of p. It fails if no process listens at addr, or if ctx ends first.
func (p *Process) Dial(ctx context.Context, addr string, path Path) (*End, error) {
	k := p.k
	if path.Out != nil {
		k.Sleep(path.Out.Delay + path.In.Delay)
	} else {
		k.Sleep(2 * path.Delay)
	}
	l := k.places[addr]
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case l == nil || l.p.dead:
		return nil, fmt.Errorf("dial %s: %w", addr, unix.ECONNREFUSED)
	}
	a, b := k.connect(p, l.p, path, p.Name, addr)
	l.take(b)
	return a, nil
}

// Connect creates a connection over path between processes p and o, without waiting for a
// handshake. It returns the end mine of p and the end other of o.
func (p *Process) Connect(o *Process, path Path) (mine, other *End) {
	return p.k.connect(p, o, path, p.Name, o.Name)
}

// Owner returns the process to which this end belongs.
func (e *End) Owner() *Process { return e.p }

// Delay returns for how long bytes that this end writes are in flight, without the time that lines
// take.
func (e *End) Delay() time.Duration {
	if e.out.way != nil {
		return e.out.way.Delay
	}
	return e.out.path.Delay
}
