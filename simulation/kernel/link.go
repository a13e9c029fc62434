package kernel

import (
	"context"
	"fmt"
	"io"
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

	// Out and In replace Rate, Delay and Buffer if they are set. Out is the way from the dialling
	// end, In the way to it.
	Out, In *Way
}

// End is one end of a simulated TCP connection.
type End struct {
	k       *Kernel
	p       *Process
	fd      int
	self    *descriptor
	in, out *pipe
	remote  string
	closed  bool
	dead    error // error of the broken connection, once this end knows of it
}

var (
	_ transport.Narrow  = (*End)(nil)
	_ transport.Distant = (*End)(nil)
)

// pipe is one direction of a connection.
type pipe struct {
	k      *Kernel
	path   Path
	to     *End // reader
	from   *End
	free   time.Duration // time at which the line can take more
	last   time.Duration // arrival time of the bytes sent last
	here   []byte
	air    [][]byte // writes in flight; nil marks the end of the stream
	bytes  int      // number of bytes in air
	eof    bool
	stuck  bool         // nothing arrives for a while
	cut    bool         // nothing arrives any more
	harm   func([]byte) // changes the next bytes that are sent; nil if none are to change
	unread []unread     // sizes of the packets in here
	flow
}

// connect creates a connection between two processes.
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

// some returns how many of n bytes a read or write moves.
func (q *pipe) some(n int) int {
	if q.path.Pieces && n > 1 && q.k.Rand.IntN(4) == 0 {
		return 1 + q.k.Rand.IntN(n)
	}
	return n
}

// Path implements transport.Distant.
func (e *End) Path() (p transport.Path, known bool) {
	q := e.out
	if q.way == nil {
		return transport.Path{RoundTrip: 2 * q.path.Delay}, true
	}
	return transport.Path{RoundTrip: q.least, Busy: q.inUse()}, q.least > 0
}

// Far does nothing, because simulated packets are never lost. It implements transport.Distant.
func (e *End) Far() {}

// TryRead implements transport.Link, as do the methods below unless they say otherwise.
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

// TryWrite writes as many bytes as there is room for.
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
	if q.harm != nil {
		q.harm(m)
		q.harm = nil
	}
	q.k.spendOn(n)
	q.send(m)
	q.wrote(n, false)
	return n, nil
}

// backlogAfter is the time for which the line must be taken before a queue counts as a backlog, as
// in transport tcp.
const backlogAfter = 500 * time.Microsecond

// Bottleneck implements transport.Narrow.
func (e *End) Bottleneck() float64 {
	switch q := e.out; {
	case q.way != nil:
		return q.socket.Bottleneck()
	case q.free > q.k.now+backlogAfter:
		return float64(q.path.Rate)
	}
	return 0
}

// send puts bytes on their way; nil marks the end of the stream.
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

// arrives delivers bytes that have passed a Way.
func (q *pipe) arrives(b []byte) {
	q.air = append(q.air, b)
	q.bytes += len(b)
	q.land()
}

// takenIn returns the time at which the reader's machine has processed n bytes that come now.
func (q *pipe) takenIn(n int) time.Duration {
	if h := q.to.p.host; h != nil {
		return h.cores().interrupt(q.k.now, n)
	}
	return q.k.now
}

// land delivers the next write that is in flight.
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

// reset breaks both directions. The writer learns of it after the delay of the path.
func (q *pipe) reset() {
	q.k.at(q.k.now+q.path.Delay, func() { q.from.fail() })
}

// fail breaks the connection at this end.
func (e *End) fail() {
	if e.closed || e.dead != nil {
		return
	}
	e.dead = unix.ECONNRESET
	e.in.here, e.in.air, e.in.bytes = nil, nil, 0
	e.self.changed()
}

// FD returns the connection's descriptor.
func (e *End) FD() int { return e.fd }

// WriteFD returns the connection's descriptor.
func (e *End) WriteFD() int { return e.fd }

// Arm does nothing.
func (e *End) Arm() bool { return false }

// Remote returns the name of the other end.
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

// part breaks the connection at the reader's end, after the bytes in flight have arrived.
func (q *pipe) part() {
	q.k.at(max(q.last, q.k.now+q.path.Delay), func() { q.to.fail() })
}

// Cut breaks the connection, as a network failure does. This end notices after mine, the other one
// after other. All bytes in flight are lost.
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

// Stall delays the bytes that this end writes by up to d.
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

// Harm passes the next bytes that this end writes to fn, which may change them.
func (e *End) Harm(fn func([]byte)) { e.out.harm = fn }

// Open reports whether both ends are open and the connection is intact.
func (e *End) Open() bool {
	return !e.closed && e.dead == nil && !e.in.stuck && !e.out.to.closed && e.out.to.dead == nil
}

// Listener accepts connections for a process.
type Listener struct {
	p    *Process
	take func(*End)
}

// Listen has take called for each connection to addr. No thread runs during the call.
func (p *Process) Listen(addr string, fn func(*End)) { p.k.places[addr] = &Listener{p, fn} }

// Dial opens a connection to addr over a path. The caller must be a thread of p.
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

// Connect creates a connection between two processes without any delay.
func (p *Process) Connect(o *Process, path Path) (mine, other *End) {
	return p.k.connect(p, o, path, p.Name, o.Name)
}

// Owner returns the process to which this end belongs.
func (e *End) Owner() *Process { return e.p }

// Delay returns for how long bytes of this end are in flight, apart from the time that lines take.
func (e *End) Delay() time.Duration {
	if e.out.way != nil {
		return e.out.way.Delay
	}
	return e.out.path.Delay
}
