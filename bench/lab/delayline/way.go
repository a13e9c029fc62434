package delayline

import (
	"errors"
	"math/rand/v2"
	"time"
)

const (
	// MaxFrame is the largest size of a frame, virtio_net_hdr included.
	MaxFrame = HeaderBytes + ethernetBytes + 4 + 65535

	// Span is the longest time of the packets of one piece on the line: the first packet arrives
	// late by up to that, as where a network card gathers packets before it interrupts.
	Span = 100 * time.Microsecond

	overhead     = 24 // bytes of preamble, FCS and gap of an Ethernet frame
	smallestWire = 84 // bytes of the shortest frame on the wire

	maxHeaders = HeaderBytes + ethernetBytes + 4 + 60 + 60 + 256 // IPv6 has extensions
)

// piece has consecutive packets of one frame that leave together.
type piece struct {
	// due is when its last packet arrives.
	due time.Duration
	// at is the place of the frame in the ring.
	at int
	// end is the end of the memory that becomes free with this piece; it is 0 but in the frame's
	// last piece.
	end  int
	form shape
	// from and to are the first packet and the one after the last.
	from, to int
}

// Way is one direction of a line. Times are from any fixed moment. It is not safe for concurrent
// use.
type Way struct {
	o      Options
	queue  time.Duration
	chance *rand.Rand
	ring   []byte
	// begin and end are the ring's used part, from begin round to end if end <= begin and anything
	// is used.
	begin, end int
	pieces     []piece
	// first and n are the used part of pieces, which is a ring as well.
	first, n int
	// idle is when the line will have sent all accepted packets.
	idle time.Duration
	// last is when the last accepted packet is due.
	last       time.Duration
	cutUntil   time.Duration
	head       [maxHeaders]byte
	stats      Stats
	late, look Lateness
}

// NewWay returns a direction of a line; its losses are the same for the same seed and number.
func NewWay(o Options, number uint64) (*Way, error) {
	if err := o.Check(); err != nil {
		return nil, err
	}
	w := &Way{chance: rand.New(rand.NewPCG(o.Seed, number)), ring: make([]byte, int(o.memory())),
		pieces: make([]piece, 1024)}
	w.take(o)
	return w, nil
}

// Change gives the line other options from the next frame on; packets in flight are not affected.
// The seed stays.
func (w *Way) Change(o Options) error {
	if err := o.Check(); err != nil {
		return err
	}
	if o.MTU != w.o.MTU || o.Seed != w.o.Seed {
		return errors.New("mtu and seed cannot be changed while the line runs")
	}
	if int(o.memory()) > len(w.ring) {
		return errors.New("these options take more memory than the running line has: start it again with them")
	}
	w.take(o)
	return nil
}

func (w *Way) take(o Options) {
	w.o, w.queue = o, 0
	if o.Rate > 0 {
		w.queue = onLine(o.queue(), o.Rate)
	}
}

// onLine returns how long bytes take on the line.
func onLine(bytes int, rate int64) time.Duration {
	return time.Duration(float64(bytes) * 8e9 / float64(rate))
}

// Cut drops all packets until a time.
func (w *Way) Cut(until time.Duration) { w.cutUntil = until }

// Room returns the memory for the next frame, MaxFrame bytes, or nil if the memory is full.
func (w *Way) Room() []byte {
	if w.n > 0 && w.end <= w.begin {
		if w.begin-w.end < MaxFrame {
			return nil
		}
		return w.ring[w.end : w.end+MaxFrame]
	}
	if w.n == 0 {
		w.begin, w.end = 0, 0
	}
	if len(w.ring)-w.end < MaxFrame {
		if w.begin < MaxFrame {
			return nil
		}
		w.end = 0
	}
	return w.ring[w.end : w.end+MaxFrame]
}

// Full counts a frame for which there was no Room.
func (w *Way) Full() { w.stats.Full++ }

// Offer takes a frame of n bytes that came at a time and is in Room.
func (w *Way) Offer(n int, came time.Duration) {
	if n < HeaderBytes+ethernetBytes {
		return
	}
	at := w.end
	form := look(w.ring[at : at+n])
	packets := form.packets()
	if came < w.cutUntil {
		w.stats.Cut += uint64(packets)
		return
	}
	open := piece{to: -1}
	var began time.Duration // when the first packet of the open piece is due
	kept := false
	for k := range packets {
		due, ok := w.admit(form.bytes(k), came)
		switch {
		case !ok:
		case open.to == k && due-began <= Span:
			open.due, open.to = due, k+1
		default:
			if kept {
				w.push(open)
			}
			open, began, kept = piece{due: due, at: at, form: form, from: k, to: k + 1}, due, true
		}
	}
	if kept {
		w.end = min((at+n+7)&^7, len(w.ring))
		open.end = w.end
		w.push(open)
	}
}

// admit tells whether a packet gets through, and when it is due.
func (w *Way) admit(bytes int, came time.Duration) (due time.Duration, ok bool) {
	if w.o.BlackHole > 0 && bytes-ethernetBytes > w.o.BlackHole {
		w.stats.Oversized++
		return 0, false
	}
	if w.o.Loss > 0 && w.chance.Float64() < w.o.Loss {
		w.stats.Lost++
		return 0, false
	}
	left := came
	if w.o.Rate > 0 {
		takes := onLine(max(bytes+overhead, smallestWire), w.o.Rate)
		start := max(w.idle, came)
		if start-came+takes > w.queue {
			w.stats.Dropped++
			return 0, false
		}
		w.stats.Queue = max(w.stats.Queue, start-came)
		w.idle = start + takes
		left = w.idle
	}
	w.last = max(w.last, left+w.o.Delay) // in order, also after the delay has become shorter
	w.stats.Packets++
	w.stats.Bytes += uint64(bytes)
	return w.last, true
}

func (w *Way) push(p piece) {
	if w.n == len(w.pieces) {
		more := make([]piece, 2*w.n)
		copy(more, w.pieces[w.first:])
		copy(more[w.n-w.first:], w.pieces[:w.first])
		w.pieces, w.first = more, 0
	}
	w.pieces[(w.first+w.n)&(len(w.pieces)-1)] = p
	w.n++
}

// Next returns when the next piece leaves; false means that nothing is in flight.
func (w *Way) Next() (time.Duration, bool) { return w.pieces[w.first].due, w.n > 0 }

// Take returns the next piece that is due: two parts of a frame, of which the second may be empty.
// Both are nil if nothing is due. They are valid until the next call of Room or Take.
func (w *Way) Take(now time.Duration) (head, payload []byte) {
	if w.n == 0 || w.pieces[w.first].due > now {
		return nil, nil
	}
	p := w.pieces[w.first]
	w.first = (w.first + 1) & (len(w.pieces) - 1)
	w.n--
	w.late.Add(now-p.due, p.to-p.from)
	if p.end != 0 {
		w.begin = p.end
	}
	frame := w.ring[p.at:]
	if p.form.size == 0 {
		return frame[:HeaderBytes+p.form.headers], []byte{}
	}
	head = w.head[:copy(w.head[:], frame[:HeaderBytes+p.form.headers])]
	p.form.cut(head, p.from, p.to)
	begin, end := p.form.part(p.from, p.to)
	return head, frame[HeaderBytes+begin : HeaderBytes+end]
}

// Refused counts a frame that the device at the end has refused.
func (w *Way) Refused() { w.stats.Refused++ }

// Looked records how long the thread did not look for frames.
func (w *Way) Looked(gap time.Duration) { w.look.Add(gap, 1) }

// Stats returns the statistics since the start or the last Reset.
func (w *Way) Stats() Stats {
	s := w.stats
	s.LateMedian, s.Late99, s.LateMax = w.late.Quantile(0.5), w.late.Quantile(0.99), w.late.longest
	s.Look99, s.LookMax = w.look.Quantile(0.99), w.look.longest
	return s
}

// Reset sets all statistics to 0.
func (w *Way) Reset() { w.stats, w.late, w.look = Stats{}, Lateness{}, Lateness{} }
