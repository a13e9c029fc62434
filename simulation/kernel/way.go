package kernel

import "time"

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

// Packets that a connection begins with, and that it has in its own host's adapter at a time.
const (
	firstPackets = 10
	localPackets = 2
)

// flow is a pipe's state on a Way.
type flow struct {
	way     *Way
	arrived func([]byte) // is given what has; nil: the end of the stream
	takes   func()       // is told that the writer may write
	pending [][]byte     // not on its way; nil: the end of the stream
	notsent int          // bytes of these
	flight  int          // bytes on their way, as far as the sender knows
	local   int          // packets in the first line
	most    int          // bytes that may be in flight: slow start
	full    bool         // the writer waits for room
	limited bool         // by the reader
	pumps   bool         // pump is called soon
	lands   time.Duration
	held    bool // by the first line, since
	since   time.Duration
}

// on puts a pipe on a way.
func (q *pipe) on(w *Way, arrived func([]byte), takes func()) {
	if w != nil {
		q.flow = flow{way: w, arrived: arrived, takes: takes, most: firstPackets * w.Packet}
	}
}

// sendOn has bytes go on their way as soon as may be.
func (q *pipe) sendOn(b []byte) {
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
	for len(q.pending) > 0 && q.local < localPackets && !q.stuck {
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
		q.local++
		p := &packet{of: q, data: b}
		if len(q.way.Lines) == 0 {
			p.passed()
			continue
		}
		p.enter()
	}
	if q.full && q.notsent < q.way.Unsent/2 {
		q.full = false
		q.takes()
	}
}

// hold notes that bytes wait for the first line although the window is open, outside its queue.
func (q *pipe) hold() {
	q.held, q.since = q.local >= localPackets && len(q.pending) > 0 && !q.stuck, q.k.now
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
	data []byte // nil: the end of the stream
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
		q.local--
		defer q.pump()
	}
	if p.hop < len(q.way.Lines) {
		p.enter()
		return
	}
	q.lands = max(q.k.now+q.way.Delay, q.lands+1)
	q.k.at(q.lands, p.arrive)
}

// arrive has a packet be there, and its sender hear of it.
func (p *packet) arrive() {
	q, n := p.of, len(p.data)
	q.arrived(p.data)
	q.k.at(q.k.now+q.way.Delay, func() {
		q.flight -= n
		q.most = min(q.most+n, q.way.Window)
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
