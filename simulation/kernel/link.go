package kernel

import (
	"context"
	"fmt"
	"io"
	"time"

	"golang.org/x/sys/unix"

	"github.com/leidenzipper/zipper/internal/transport"
)

// Path is what bytes between two places meet, in each direction.
type Path struct {
	Rate   int64         // bytes a second; 0: any
	Delay  time.Duration // from the last byte's departure to its arrival
	Jitter time.Duration // more, at most; order stays
	Buffer int           // bytes on their way or not read before a writer has to wait
	Pieces bool          // reads and writes move only a part now and then

	// Out and In are what bytes meet instead from who dials, and to it: rate, delay and buffer do
	// not count then.
	Out, In *Way
}

// End is one end of a connection: what a TCP socket is.
type End struct {
	k       *Kernel
	p       *Process
	fd      int
	self    *descriptor
	in, out *pipe
	remote  string
	closed  bool
	dead    error // the connection is broken, as far as this end knows
}

var (
	_ transport.Narrow  = (*End)(nil)
	_ transport.Distant = (*End)(nil)
)

// pipe is one direction.
type pipe struct {
	k      *Kernel
	path   Path
	to     *End // who reads
	from   *End
	free   time.Duration // when the line takes more
	last   time.Duration // when what was sent last arrives
	here   []byte
	air    [][]byte // on its way; nil: the end of the stream
	bytes  int      // of air
	eof    bool
	stuck  bool         // nothing arrives, for a while
	cut    bool         // or any more
	harm   func([]byte) // to the next bytes that are sent
	unread []unread     // by size, as in here
	flow
}

// connect makes a connection between two processes.
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

// some is how many of n bytes are moved.
func (q *pipe) some(n int) int {
	if q.path.Pieces && n > 1 && q.k.Rand.IntN(4) == 0 {
		return 1 + q.k.Rand.IntN(n)
	}
	return n
}

// Path is transport.Distant's.
func (e *End) Path() (p transport.Path, known bool) {
	q := e.out
	if q.way == nil {
		return transport.Path{RoundTrip: 2 * q.path.Delay}, true
	}
	return transport.Path{RoundTrip: q.least, Busy: q.inUse()}, q.least > 0
}

// Far has nothing to do: nothing is lost.
func (e *End) Far() {}

// TryRead is transport.Link's, as are most others.
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

// TryWrite writes.
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

// stands is how long a line is taken for already, where a queue stands before it: as transport tcp
// has it.
const stands = 500 * time.Microsecond

// Bottleneck is transport.Narrow's.
func (e *End) Bottleneck() float64 {
	switch q := e.out; {
	case q.way != nil:
		return q.socket.Bottleneck()
	case q.free > q.k.now+stands:
		return float64(q.path.Rate)
	}
	return 0
}

// send has bytes arrive, nil for the end of the stream.
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

// arrives has bytes be there that have passed a way.
func (q *pipe) arrives(b []byte) {
	q.air = append(q.air, b)
	q.bytes += len(b)
	q.land()
}

// takenIn is when the reader's machine has n bytes that come now.
func (q *pipe) takenIn(n int) time.Duration {
	if h := q.to.p.host; h != nil {
		return h.cores().interrupt(q.k.now, n)
	}
	return q.k.now
}

// land has the next bytes arrive.
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
	case q.to.closed: // the system of the reader says so
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

// reset breaks both directions: at the writer's end when that has heard of it.
func (q *pipe) reset() {
	q.k.at(q.k.now+q.path.Delay, func() { q.from.fail() })
}

// fail is what an end learns of a broken connection.
func (e *End) fail() {
	if e.closed || e.dead != nil {
		return
	}
	e.dead = unix.ECONNRESET
	e.in.here, e.in.air, e.in.bytes = nil, nil, 0
	e.self.changed()
}

// FD is the connection's descriptor.
func (e *End) FD() int { return e.fd }

// WriteFD is, too.
func (e *End) WriteFD() int { return e.fd }

// Arm has nothing to do.
func (e *End) Arm() bool { return false }

// Remote names the other end.
func (e *End) Remote() string { return e.remote }

// Close closes. What was written still arrives, unless something came that was not read.
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

// part tells the reader that the writer has gone, behind what is on its way.
func (q *pipe) part() {
	q.k.at(max(q.last, q.k.now+q.path.Delay), func() { q.to.fail() })
}

// Cut breaks the connection, as when the network goes: both ends hear of it, each after a while.
func (e *End) Cut(mine, other time.Duration) {
	if e.closed {
		return
	}
	e.in.air, e.out.air, e.in.bytes, e.out.bytes = nil, nil, 0, 0
	e.in.pending, e.out.pending = nil, nil
	e.in.stuck, e.out.stuck, e.in.cut, e.out.cut = true, true, true, true
	far := e.out.to
	e.k.After(mine, func() { e.fail() })
	e.k.After(other, func() { far.fail() })
}

// Stall has what this end writes not arrive for d.
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

// Harm changes the next bytes that this end writes.
func (e *End) Harm(fn func([]byte)) { e.out.harm = fn }

// Open reports whether neither end has closed the connection, and it is whole.
func (e *End) Open() bool {
	return !e.closed && e.dead == nil && !e.in.stuck && !e.out.to.closed && e.out.to.dead == nil
}

// Listener is where a process takes connections in.
type Listener struct {
	p    *Process
	take func(*End)
}

// Listen has fn take what comes to an address, on nobody's thread.
func (p *Process) Listen(addr string, fn func(*End)) { p.k.places[addr] = &Listener{p, fn} }

// Dial opens a connection; the caller is a thread of p.
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

// Connect gives two processes a connection that is there at once.
func (p *Process) Connect(o *Process, path Path) (mine, other *End) {
	return p.k.connect(p, o, path, p.Name, o.Name)
}

// Owner is whose end it is.
func (e *End) Owner() *Process { return e.p }

// Delay is how long what this end writes is on its way, beside lines.
func (e *End) Delay() time.Duration {
	if e.out.way != nil {
		return e.out.way.Delay
	}
	return e.out.path.Delay
}
