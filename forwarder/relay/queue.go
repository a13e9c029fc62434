package relay

import (
	"fmt"

	"github.com/leidenzipper/zipper/internal/wire"
)

// limits are the maximum numbers of bytes that one source may have queued at one output: of
// payload, and of headers and control frames.
type limits struct{ payload, control int }

// flow has the numbers of bytes that one source has queued at one output: of payload, and of
// headers and control frames.
type flow struct{ payload, control int }

// entry is one queued frame, or the unwritten rest of one. Its bytes are in buf, or in a block or a
// pipe (zc).
type entry struct {
	buf      *buffer   // the buffer that holds the bytes, or nil if zc does
	off, end int       // the range of the bytes in buf
	zc       *zerocopy // the frame in a block or a pipe, or nil
	src      uint32    // the rank whose limits are charged for the frame, or wire.Nobody
	payload  uint32    // the number of bytes of payload that are charged to src
	control  uint32    // the number of other bytes that are charged to src
	// accounts for the connection that the frame arrived over; nil for the forwarder's own frames
	from   *memory
	memory uint32 // the number of bytes of memory that are charged to from
	at     int64  // the time (moment) at which the frame was queued, or 0 if no statistics are kept
}

// book charges an entry's memory, in bytes, to the connection that the frame arrived over (from);
// nil: to none.
func (e *entry) book(from *memory, memory int) {
	if from != nil {
		e.from, e.memory = from, uint32(memory+entrySize)
		from.charge(int(e.memory))
	}
}

// fifo is a first-in, first-out queue of entries in a ring that grows.
type fifo struct {
	ring    []entry
	head, n int
}

// push appends an entry at the tail of the queue.
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

// at returns the entry at position i, counted from the head.
func (q *fifo) at(i int) *entry { return &q.ring[(q.head+i)%len(q.ring)] }

// pop removes and returns the entry at the head of the queue, which must not be empty.
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

// pending reports whether anything is queued. The caller holds o.mu, as in the functions below,
// except for those that lock it.
func (o *output) pending() bool {
	return o.current.buf != nil || o.current.zc != nil || o.count.buf != nil || o.small.n > 0 || o.bulk.n > 0
}

// widen multiplies the limits on the bytes that each sending rank may have queued by n, the number
// of ranks behind the link. It takes o.mu itself.
func (o *output) widen(n int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.limits.payload *= n
	o.limits.control *= n
}

// queued returns the number of bytes of the frames that wait to be written, each in full even if it
// is partly written. It takes o.mu itself.
func (o *output) queued() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.addBlocked()
	n := 0
	for _, f := range o.flows {
		n += f.payload + f.control
	}
	return n
}

// enqueue queues the frames in b from rank src, the first done bytes of which are written. owner,
// if not nil, holds b, and taken reports that the queue keeps it. An error means that src has too
// many bytes queued.
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

// store copies p to a buffer of the queue, behind the queue's last frame if there is room. It
// returns the buffer and the range of the bytes in it.
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

// charge counts bytes of payload and other (control) bytes as queued by the rank src. It returns an
// error if the rank exceeds its limits.
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

// uncharge releases the bytes that charge and book have counted for an entry, because the entry
// leaves the queue.
func (o *output) uncharge(e entry) {
	o.depth.Add(-int64(e.payload) - int64(e.control))
	o.noteDequeued(&e)
	if e.from != nil {
		e.from.release(int(e.memory))
	}
	if f, ok := o.flows[e.src]; ok {
		o.flows[e.src] = flow{f.payload - int(e.payload), f.control - int(e.control)}
	}
}

// release uncounts an entry's bytes, and frees its buffer, block or pipe, because the entry leaves
// the queue.
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

// discard drops everything that is queued, and frees its memory.
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

// bulkTurn reports whether the next frame to write is a bulk one, once s small and b bulk frames
// have been written. skipped is the number of bytes of small frames written since the last bulk
// frame.
func (o *output) bulkTurn(s, b, skipped int) bool {
	small, bulk := o.small.n-s, o.bulk.n-b
	return bulk > 0 && s >= o.ahead && (small == 0 || skipped >= bulkShare)
}

// runs keeps the frames that are queued now ahead of all later ones, because the peer is not
// Running before they arrive.
func (o *output) runs() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.ahead = o.small.n
}

// fail records err, the failure of the link, drops the queue, and asks the connection's loop to end
// the connection.
func (o *output) fail(err error) {
	o.failure = err
	o.discard()
	o.closed = true
	o.broken()
}
