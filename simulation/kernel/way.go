package kernel

import (
	"time"

	"github.com/leidenzipper/zipper/internal/transport/standing"
)

// Way is how bytes of a connection get from one end to the other, as with TCP: in packets over
// lines, as many at a time as the window allows. Nothing is lost.
type Way struct {
	Lines  []Passage
	Delay  time.Duration // beside what lines take
	Packet int           // bytes of payload
	Unsent int           // bytes that are taken from a writer and not on their way, before it has to wait
	Window int           // bytes on their way or not read
}

// Passage is a line, and the queue there.
type Passage struct {
	Line *Line
	Key  string
}

// firstPackets are those that a connection begins with.
const firstPackets = 10

// TCP hands down to its own host's adapter what it could send in handFor if nothing were queued,
// localPackets at least and mostLocal at most (tcp_small_queues; docs/decisions/0021).
const (
	handFor      = time.Millisecond
	localPackets = 2
	mostLocal    = 1 << 20
)

// flow is a pipe's state on a Way.
type flow struct {
	way     *Way
	arrived func([]byte)              // is given what has; nil: the end of the stream
	there   func(n int) time.Duration // when the reader's machine has n bytes that come now
	takes   func()                    // is told that the writer may write
	pending [][]byte                  // not on its way; nil: the end of the stream
	notsent int                       // bytes of these
	flight  int                       // bytes on their way, as far as the sender knows
	local   int                       // bytes in the first line
	most    int                       // bytes that may be in flight: slow start
	full    bool                      // the writer waits for room
	limited bool                      // by the reader
	pumps   bool                      // pump is called soon
	lands   time.Duration
	held    bool // by the first line, since
	since   time.Duration

	socket      standing.Queue // bounds what it holds, as transport tcp has it
	acked       uint64         // bytes that have been acknowledged
	busy, began time.Duration  // the socket held something for so long, without now: since began
	trip, least time.Duration  // the round trip, lately and at least
}

// holds is how many bytes the socket does.
func (q *pipe) holds() int { return q.notsent + q.flight }

// vacant is how many more it may.
func (q *pipe) vacant() int {
	n := q.way.Unsent - q.notsent
	if b := q.socket.Bound(); b > 0 {
		n = min(n, b-q.holds())
	}
	return n
}

// writable reports whether a writer is told that it may write: TCP waits until a third is free.
func (q *pipe) writable() bool {
	b := q.socket.Bound()
	return q.notsent < q.way.Unsent/2 && (b == 0 || q.holds() <= 2*b/3)
}

// wrote follows a write of n bytes; full: the socket takes no more now.
func (q *pipe) wrote(n int, full bool) {
	if q.way == nil || !q.socket.Wrote(n, full) {
		return
	}
	q.socket.Measured(standing.Sample{At: q.k.now, Acked: q.acked, Busy: q.inUse(), Trip: q.trip, Least: q.least})
}

// inUse is how long the socket has held something, in all.
func (q *pipe) inUse() time.Duration {
	if q.holds() > 0 {
		return q.busy + q.k.now - q.began
	}
	return q.busy
}

// acknowledged: n bytes have arrived, which were handed down then.
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

// localMost is how many bytes may be in the first line.
func (q *pipe) localMost() int {
	n := localPackets * q.way.Packet
	if q.least > 0 {
		n = max(n, min(mostLocal, int(float64(q.most)*float64(handFor)/float64(q.least))))
	}
	return n
}

// on puts a pipe on a way.
func (q *pipe) on(w *Way, arrived func([]byte), there func(int) time.Duration, takes func()) {
	if w != nil {
		q.flow = flow{way: w, arrived: arrived, there: there, takes: takes, most: firstPackets * w.Packet}
	}
}

// sendOn has bytes go on their way as soon as may be.
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

// pump sends what it may.
func (q *pipe) pump() {
	q.letGo()
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

// hold notes that bytes wait for the first line although the window is open, outside its queue.
func (q *pipe) hold() {
	q.held, q.since = q.local >= q.localMost() && len(q.pending) > 0 && !q.stuck, q.k.now
}

// letGo has the line know how long they have.
func (q *pipe) letGo() {
	if q.held && len(q.way.Lines) > 0 {
		p := q.way.Lines[0]
		packets := (q.notsent + q.way.Packet - 1) / q.way.Packet
		p.Line.turn(p.Key).waited += time.Duration(packets) * (q.k.now - q.since)
	}
}

// packet is on its way.
type packet struct {
	of   *pipe
	hop  int
	sent time.Duration // when it was handed down
	data []byte        // nil: the end of the stream
}

// enter has it wait at its next line.
func (p *packet) enter() {
	w := p.of.way
	next := w.Lines[p.hop]
	next.Line.push(&queued{passenger: p, size: len(p.data), fair: w.Packet}, next.Key)
}

// next takes up to n bytes off what is to be sent: all before the end of the stream.
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

// passed has a packet go on behind a line.
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

// come has a packet be there when the reader's machine has taken it in.
func (p *packet) come() {
	q := p.of
	q.lands = max(q.there(len(p.data)), q.lands+1) // none overtakes
	q.k.at(q.lands, p.arrive)
}

// arrive has a packet be there, and its sender hear of it.
func (p *packet) arrive() {
	q, n := p.of, len(p.data)
	q.arrived(p.data)
	q.k.at(q.k.now+q.way.Delay, func() {
		q.acknowledged(n, p.sent)
		q.pump()
	})
}

// opened lets the sender go on which the reader has kept waiting.
func (q *pipe) opened() {
	if q.limited && !q.pumps {
		q.pumps = true
		q.k.at(q.k.Now()+q.way.Delay, func() {
			q.pumps = false
			q.pump()
		})
	}
}
