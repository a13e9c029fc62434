package kernel

import (
	"time"

	"github.com/leidenzipper/zipper/internal/transport/standing"
)

// Way describes how the bytes of a connection get from one end to the other, as with TCP: in
// packets over lines, as many at a time as the window allows. No packet is lost.
type Way struct {
	Lines  []Passage     // lines that a packet passes, in order
	Delay  time.Duration // time apart from the time that lines take
	Packet int           // payload bytes of a packet
	// Unsent is the number of bytes accepted from a writer and not yet in flight, beyond which
	// the writer waits.
	Unsent int
	Window int // bytes in flight or unread, at most
}

// Passage is a line and the key of a queue in it.
type Passage struct {
	Line *Line  // line that packets pass
	Key  string // key of the queue of the line in which they wait
}

// firstPackets is the number of packets that a new connection may have in flight.
const firstPackets = 10

// TCP hands to its host's adapter as many bytes as it could send in handFor if nothing were queued:
// at least localPackets packets, and at most mostLocal bytes (tcp_small_queues;
// docs/decisions/0021).
const (
	handFor      = time.Millisecond
	localPackets = 2
	mostLocal    = 1 << 20
)

// flow is the state of a pipe that uses a Way.
type flow struct {
	way *Way // path that the packets take; nil if the pipe has none
	// arrived is called with bytes that have arrived; nil marks the end of the stream.
	arrived func([]byte)
	// there returns when the reader's machine has processed n bytes that come now.
	there   func(n int) time.Duration
	takes   func()        // called when the writer may write
	pending [][]byte      // writes not yet in flight; nil marks the end of the stream
	notsent int           // number of bytes in pending
	flight  int           // bytes that the sender has not seen acknowledged
	local   int           // bytes in the first line
	most    int           // congestion window in bytes, which grows by slow start
	full    bool          // the writer waits for room
	limited bool          // the reader's window limits the sender
	pumps   bool          // a call of pump is planned
	lands   time.Duration // time at which the reader's machine has processed the last packet
	held    bool          // pending bytes wait for room in the first line
	since   time.Duration // time since which they wait

	socket standing.Queue // bound of the bytes that the socket holds, as in transport tcp
	acked  uint64         // bytes acknowledged so far
	// busy is the total time for which the socket has held bytes, without the current period, which
	// started at began.
	busy, began time.Duration
	// trip is the smoothed round-trip time, least the smallest one.
	trip, least time.Duration
}

// holds returns the number of bytes that the sender's socket holds: unsent, or sent and not
// acknowledged.
func (q *pipe) holds() int { return q.notsent + q.flight }

// vacant returns how many more bytes the sender's socket accepts.
func (q *pipe) vacant() int {
	n := q.way.Unsent - q.notsent
	if b := q.socket.Bound(); b > 0 {
		n = min(n, b-q.holds())
	}
	return n
}

// writable reports whether a writer that waits for room is woken. As with TCP, less than half of
// Unsent must be unsent, and a third of the socket's bound, if it has one, must be free.
func (q *pipe) writable() bool {
	b := q.socket.Bound()
	return q.notsent < q.way.Unsent/2 && (b == 0 || q.holds() <= 2*b/3)
}

// wrote tells the model of the socket's queue (q.socket) that n bytes were written to the socket.
// full says that the socket has no room for more now. It does nothing for a pipe without a Way.
func (q *pipe) wrote(n int, full bool) {
	if q.way == nil || !q.socket.Wrote(n, full) {
		return
	}
	q.socket.Measured(standing.Sample{At: q.k.now, Acked: q.acked, Busy: q.inUse(), Trip: q.trip, Least: q.least})
}

// inUse returns the total time for which the sender's socket has held bytes, up to now.
func (q *pipe) inUse() time.Duration {
	if q.holds() > 0 {
		return q.busy + q.k.now - q.began
	}
	return q.busy
}

// acknowledged handles the acknowledgement of n bytes that were sent at virtual time sent: it
// updates the window and the round-trip times.
func (q *pipe) acknowledged(n int, sent time.Duration) {
	trip := q.k.now - sent
	switch q.flight -= n; {
	case q.trip == 0:
		q.trip, q.least = trip, trip
	default:
		q.trip += (trip - q.trip) / 8 // RFC 6298
		q.least = min(q.least, trip)
	}
	q.acked += uint64(n)
	q.most = min(q.most+n, q.way.Window)
	if q.holds() == 0 {
		q.busy += q.k.now - q.began
	}
}

// localMost returns how many bytes of the connection may be in the first line, the sending host's
// adapter.
func (q *pipe) localMost() int {
	n := localPackets * q.way.Packet
	if q.least > 0 {
		n = max(n, min(mostLocal, int(float64(q.most)*float64(handFor)/float64(q.least))))
	}
	return n
}

// on assigns the Way w to the pipe, with the functions that the pipe calls for its packets. If w
// is nil the pipe has no Way.
func (q *pipe) on(w *Way, arrived func([]byte), there func(int) time.Duration, takes func()) {
	if w != nil {
		q.flow = flow{way: w, arrived: arrived, there: there, takes: takes, most: firstPackets * w.Packet}
	}
}

// sendOn queues bytes b for the Way and plans a call of pump. A nil b marks the end of the stream.
func (q *pipe) sendOn(b []byte) {
	if q.holds() == 0 {
		q.began = q.k.now
	}
	q.pending = append(q.pending, b)
	q.notsent += len(b)
	if q.pumps {
		return
	}
	q.pumps = true
	q.k.at(q.k.Now(), func() {
		q.pumps = false
		q.pump()
	})
}

// pump sends pending bytes as packets into the first line, as many as the congestion window, the
// reader's window and the bound of the first line allow.
func (q *pipe) pump() {
	q.addWait()
	defer q.hold()
	for len(q.pending) > 0 && q.local < q.localMost() && !q.stuck {
		b := q.pending[0]
		n := min(q.way.Packet, q.notsent)
		if b != nil {
			if q.limited = n > q.way.Window-len(q.here)-q.flight; q.limited || n > q.most-q.flight && q.flight > 0 {
				break
			}
			b = q.next(n)
		} else {
			q.pending = q.pending[1:]
		}
		q.flight += len(b)
		q.local += len(b)
		p := &packet{of: q, data: b, sent: q.k.now}
		if len(q.way.Lines) == 0 {
			p.passed()
			continue
		}
		p.enter()
	}
	if q.full && q.writable() {
		q.full = false
		q.takes()
	}
}

// hold notes whether bytes now wait for room in the first line although the congestion window would
// allow sending them.
func (q *pipe) hold() {
	q.held, q.since = q.local >= q.localMost() && len(q.pending) > 0 && !q.stuck, q.k.now
}

// addWait adds the time since hold noted that bytes wait for the first line to that line's waiting
// time.
func (q *pipe) addWait() {
	if q.held && len(q.way.Lines) > 0 {
		p := q.way.Lines[0]
		packets := (q.notsent + q.way.Packet - 1) / q.way.Packet
		p.Line.turn(p.Key).waited += time.Duration(packets) * (q.k.now - q.since)
	}
}

// packet is a packet in flight.
type packet struct {
	of   *pipe         // pipe whose bytes the packet has
	hop  int           // number of lines that the packet has passed
	sent time.Duration // time at which it was handed to the first line
	data []byte        // nil marks the end of the stream
}

// enter puts the packet into the queue of the next line of its Way, the one at index hop. It leaves
// hop as it is: passed increments hop once the packet has passed that line.
func (p *packet) enter() {
	w := p.of.way
	next := w.Lines[p.hop]
	next.Line.push(&queued{passenger: p, size: len(p.data), fair: w.Packet}, next.Key)
}

// next removes up to n bytes from pending and returns them: fewer only if fewer are pending or if
// the stream ends after them.
func (q *pipe) next(n int) []byte {
	b := q.pending[0]
	if len(b) >= n {
		if q.pending[0] = b[n:]; len(b) == n {
			q.pending = q.pending[1:]
		}
		q.notsent -= n
		return b[:n:n]
	}
	all := make([]byte, 0, n)
	for len(all) < n && len(q.pending) > 0 && q.pending[0] != nil {
		k := min(n-len(all), len(q.pending[0]))
		all = append(all, q.pending[0][:k]...)
		if q.pending[0] = q.pending[0][k:]; len(q.pending[0]) == 0 {
			q.pending = q.pending[1:]
		}
	}
	q.notsent -= len(all)
	return all
}

// passed is called when the packet has passed a line of the Way. It sends the packet to the next
// line, or to the reader after the last one.
func (p *packet) passed() {
	q := p.of
	if p.hop++; p.hop == 1 {
		q.local -= len(p.data)
		defer q.pump()
	}
	if p.hop < len(q.way.Lines) {
		p.enter()
		return
	}
	q.k.at(q.k.now+q.way.Delay, p.come)
}

// come is called when the packet has reached the reader's machine. It has arrive called when that
// machine has processed the packet.
func (p *packet) come() {
	q := p.of
	q.lands = max(q.there(len(p.data)), q.lands+1) // distinct times keep the order
	q.k.at(q.lands, p.arrive)
}

// arrive delivers the packet to the reader, and acknowledges it to the sender after the delay of
// the Way.
func (p *packet) arrive() {
	q, n := p.of, len(p.data)
	q.arrived(p.data)
	q.k.at(q.k.now+q.way.Delay, func() {
		q.acknowledged(n, p.sent)
		q.pump()
	})
}

// opened lets the sender go on if the reader's window, in which there is room again, has limited
// it.
func (q *pipe) opened() {
	if q.limited && !q.pumps {
		q.pumps = true
		q.k.at(q.k.Now()+q.way.Delay, func() {
			q.pumps = false
			q.pump()
		})
	}
}
