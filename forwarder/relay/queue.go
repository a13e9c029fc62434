package relay

import (
	"fmt"

	"github.com/leidenzipper/zipper/internal/wire"
)

// limits bound what one source may have queued at one output, in bytes.
type limits struct{ payload, control int }

// flow is what one source has queued here, in bytes.
type flow struct{ payload, control int }

// entry is one queued frame or the rest of one: in buf, or in a block or a pipe.
type entry struct {
	buf      *buffer
	off, end int
	zc       *zerocopy
	src      uint32
	payload  uint32  // bytes charged to src: payload,
	control  uint32  // and the rest
	from     *memory // that it came over; nil: it is our own
	memory   uint32  // bytes booked there
	at       int64   // when it came into the queue, as output.now has it; 0: nobody wants to know
}

// book books the memory that an entry keeps to the connection that it came over.
func (e *entry) book(from *memory, memory int) {
	if from != nil {
		e.from, e.memory = from, uint32(memory+entrySize)
		from.took(int(e.memory))
	}
}

// fifo is a queue of entries in a ring that grows.
type fifo struct {
	ring    []entry
	head, n int
}

func (q *fifo) push(e entry) {
	if q.n == len(q.ring) {
		bigger := make([]entry, max(firstRing, 2*q.n))
		for i := range q.n {
			bigger[i] = q.ring[(q.head+i)%len(q.ring)]
		}
		q.ring, q.head = bigger, 0
	}
	q.ring[(q.head+q.n)%len(q.ring)] = e
	q.n++
}

func (q *fifo) at(i int) *entry { return &q.ring[(q.head+i)%len(q.ring)] }

func (q *fifo) pop() entry {
	e := q.ring[q.head]
	q.ring[q.head] = entry{}
	q.head = (q.head + 1) % len(q.ring)
	if q.n--; q.n == 0 {
		q.head = 0
		if len(q.ring) > keepRing { // after a burst: an idle link keeps little memory
			q.ring = nil
		}
	}
	return e
}

func (o *output) pending() bool {
	return o.current.buf != nil || o.current.zc != nil || o.count.buf != nil || o.small.n > 0 || o.bulk.n > 0
}

// widen raises the limits of every source for a link that leads to n ranks.
func (o *output) widen(n int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.limits.payload *= n
	o.limits.control *= n
}

// queued returns the bytes that wait to be written.
func (o *output) queued() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.stillBlocked()
	n := 0
	for _, f := range o.flows {
		n += f.payload + f.control
	}
	return n
}

// enqueue queues the frames in b, of which the first done bytes are written.
func (o *output) enqueue(from *memory, src uint32, b []byte, done int, owner *buffer) (taken bool, err error) {
	for off := 0; off < len(b); {
		h := wire.ParsedHeader(b[off:])
		end := off + wire.HeaderLen + int(h.Length)
		if end > done {
			payload := h.Payload()
			control := end - off - payload
			if err := o.charge(src, payload, control); err != nil {
				return taken, err
			}
			e := entry{src: src, payload: uint32(payload), control: uint32(control)}
			begin := max(off, done)
			if owner != nil {
				e.buf, e.off, e.end = owner, begin, end
				if owner.refs++; owner.refs == 1 {
					e.book(from, cap(owner.b))
				}
				taken = true
			} else {
				e.buf, e.off, e.end = o.store(b[begin:end], h.Type == wire.TypeData && begin == off)
				e.book(from, end-begin)
			}
			o.noteQueued(&e)
			switch {
			case begin > off:
				o.current = e
			case h.Type == wire.TypeData:
				o.bulk.push(e)
			default:
				o.small.push(e)
			}
		}
		off = end
	}
	return taken, nil
}

// store copies queued bytes, behind those of the queue's last frame when there is room.
func (o *output) store(p []byte, bulk bool) (*buffer, int, int) {
	q := &o.small
	if bulk {
		q = &o.bulk
	}
	var buf *buffer
	if q.n > 0 {
		if last := q.at(q.n - 1); last.buf != nil && last.end == len(last.buf.b) &&
			cap(last.buf.b)-len(last.buf.b) >= len(p) {
			buf = last.buf
		}
	}
	if buf == nil {
		buf = o.pool.get(max(len(p), classes[chunk]))
	}
	off := len(buf.b)
	buf.b = append(buf.b, p...)
	buf.refs++
	return buf, off, len(buf.b)
}

// charge books queued bytes to their source.
func (o *output) charge(src uint32, payload, control int) error {
	f := o.flows[src]
	if f.payload+payload > o.limits.payload {
		return fmt.Errorf("sent more than its credit: %d payload bytes wait here for a rank that does not read",
			f.payload+payload)
	}
	if f.control+control > o.limits.control {
		return fmt.Errorf("sent too many messages: %d bytes of envelopes wait here for a rank that does not read",
			f.control+control)
	}
	if o.flows == nil {
		o.flows = map[uint32]flow{}
	}
	o.flows[src] = flow{f.payload + payload, f.control + control}
	o.depth.Add(int64(payload + control))
	return nil
}

func (o *output) uncharge(e entry) {
	o.depth.Add(-int64(e.payload) - int64(e.control))
	o.noteGone(&e)
	if e.from != nil {
		e.from.gave(int(e.memory))
	}
	if f, ok := o.flows[e.src]; ok {
		o.flows[e.src] = flow{f.payload - int(e.payload), f.control - int(e.control)}
	}
}

func (o *output) release(e entry) {
	o.uncharge(e)
	if e.zc != nil {
		e.zc.end()
		return
	}
	if e.buf.refs--; e.buf.refs == 0 {
		o.pool.put(e.buf)
	}
}

func (o *output) discard() {
	if o.current.buf != nil || o.current.zc != nil {
		o.release(o.current)
		o.current = entry{}
	}
	if o.count.buf != nil {
		o.release(o.count)
		o.count = entry{}
	}
	o.ahead = 0
	for o.small.n > 0 {
		o.release(o.small.pop())
	}
	for o.bulk.n > 0 {
		o.release(o.bulk.pop())
	}
	o.flows = nil
	o.unblocked()
}

// bulkTurn decides which class goes next, when so many small and bulk frames are taken off before.
func (o *output) bulkTurn(s, b, skipped int) bool {
	small, bulk := o.small.n-s, o.bulk.n-b
	return bulk > 0 && s >= o.ahead && (small == 0 || skipped >= bulkShare)
}

// runs has what is queued go before all else: the other end runs too when it has come.
func (o *output) runs() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.ahead = o.small.n
}

// fail notes the link's failure and leaves the rest to the owner loop.
func (o *output) fail(err error) {
	o.failure = err
	o.discard()
	o.closed = true
	o.broken()
}
