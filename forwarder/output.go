package forwarder

import (
	"fmt"
	"sync"

	"github.com/leidenzipper/zipper/transport"
	"github.com/leidenzipper/zipper/wire"
)

// Bounds of one vectored write.
const (
	maxIov   = 64
	maxFlush = 512 << 10 // bytes
	// bulkShare: after this many bytes of small frames one bulk frame has its turn, so that neither class starves.
	bulkShare = 1 << 20
)

// output is the writing side of a link. Any loop writes to it directly while nothing is queued; what the link
// does not take is queued, and from then on only the owner loop writes, when the link is writable again.
//
// Two queues: frames of bulk (Data) and all others, which overtake. Order inside a class is kept, so the
// sequenced frames of a flow stay in order.
type output struct {
	mu      sync.Mutex
	link    transport.Link
	lender  transport.Lender // the link, if it has large pieces
	placer  transport.Placer // the link, if it puts them where they belong
	piper   transport.Piper  // the link, if it takes what is in pipes
	pool    *pool
	arm     func(on bool) // asks the owner loop's epoll for writability
	broken  func()        // tells the owner loop to tear the link down
	closed  bool
	current entry // rest of a frame whose beginning is written: goes first
	small   fifo
	bulk    fifo
	skipped int             // bytes of small frames written since the last bulk frame
	flows   map[uint32]flow // by source
	limits  limits
	failure error // of the link; the owner tears it down
}

// limits bound what one source may have queued at one output, in bytes.
type limits struct{ payload, control int }

// flow is what one source has queued here, in bytes.
type flow struct{ payload, control int }

// entry is one queued frame or the rest of one: in buf, or in a block or a pipe.
type entry struct {
	buf      *buffer
	off, end int
	pass     *passage
	src      uint32
	payload  uint32 // bytes charged to src: payload,
	control  uint32 // and the rest
}

// fifo is a queue of entries in a ring that grows.
type fifo struct {
	ring    []entry
	head, n int
}

func (q *fifo) push(e entry) {
	if q.n == len(q.ring) {
		bigger := make([]entry, max(16, 2*q.n))
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
		if len(q.ring) > 1024 { // after a burst: an idle link keeps little memory
			q.ring = nil
		}
	}
	return e
}

func (o *output) pending() bool {
	return o.current.buf != nil || o.current.pass != nil || o.small.n > 0 || o.bulk.n > 0
}

// write sends whole frames from src, directly if it can. vec is the caller's scratch of length 1. When owner is
// not nil it holds b and nothing else, and taken reports that the queue keeps it. The error blames the source.
func (o *output) write(vec [][]byte, src uint32, b []byte, owner *buffer) (taken bool, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.closed {
		return false, nil
	}
	n := 0
	if !o.pending() {
		vec[0] = b
		n, err = o.link.TryWrite(vec...)
		if n == len(b) {
			return false, nil
		}
		if err != nil && err != transport.ErrAgain {
			o.fail(err)
			return false, nil
		}
		if n > 0 { // the kernel took a part: it is full now
			n, err = o.more(vec, b, n)
			if err != nil || n == len(b) {
				return false, nil
			}
		}
		o.arm(true)
	}
	return o.enqueue(src, b, n, owner)
}

// more repeats a write that was taken in part: a socket's buffer may have a little room left.
func (o *output) more(vec [][]byte, b []byte, n int) (int, error) {
	for n < len(b) {
		vec[0] = b[n:]
		k, err := o.link.TryWrite(vec...)
		if err == transport.ErrAgain {
			return n, nil
		}
		if err != nil {
			o.fail(err)
			return n, err
		}
		n += k
	}
	return n, nil
}

// widen raises the limits of every source for a link that leads to n ranks.
func (o *output) widen(n int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.limits.payload *= n
	o.limits.control *= n
}

// enqueue queues the frames in b, of which the first done bytes are written.
func (o *output) enqueue(src uint32, b []byte, done int, owner *buffer) (taken bool, err error) {
	for off := 0; off < len(b); {
		h, err := wire.ParseHeader(b[off:])
		if err != nil {
			return taken, err // cannot be: the reader has parsed it
		}
		end := off + wire.HeaderLen + int(h.Length)
		if end > done {
			payload := h.Payload()
			control := end - off - payload
			if err := o.charge(src, payload, control); err != nil {
				return taken, err
			}
			e := entry{src: src, payload: uint32(payload), control: uint32(control)}
			from := max(off, done)
			if owner != nil {
				e.buf, e.off, e.end = owner, from, end
				owner.refs++
				taken = true
			} else {
				e.buf, e.off, e.end = o.store(b[from:end], h.Type == wire.TypeData && from == off)
			}
			switch {
			case from > off:
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
		if last := q.at(q.n - 1); last.buf != nil && last.end == len(last.buf.b) && cap(last.buf.b)-len(last.buf.b) >= len(p) {
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
		return fmt.Errorf("sent more than its credit: %d payload bytes wait here for a rank that does not read", f.payload+payload)
	}
	if f.control+control > o.limits.control {
		return fmt.Errorf("sent too many messages: %d bytes of envelopes wait here for a rank that does not read", f.control+control)
	}
	if o.flows == nil {
		o.flows = map[uint32]flow{}
	}
	o.flows[src] = flow{f.payload + payload, f.control + control}
	return nil
}

func (o *output) uncharge(e entry) {
	if f, ok := o.flows[e.src]; ok {
		o.flows[e.src] = flow{f.payload - int(e.payload), f.control - int(e.control)}
	}
}

func (o *output) release(e entry) {
	o.uncharge(e)
	if e.pass != nil {
		e.pass.end()
		return
	}
	if e.buf.refs--; e.buf.refs == 0 {
		o.pool.put(e.buf)
	}
}

// flush writes what is queued until the link takes no more or a fair share is done. Owner loop only; vec is its
// scratch, of length maxIov. done reports that nothing is left.
func (o *output) flush(vec [][]byte) (done bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for range 4 {
		if o.closed {
			return true
		}
		if !o.pending() {
			o.arm(false)
			clear(o.flows) // all zero; sources that are gone leave nothing behind
			return true
		}
		if o.passNext() {
			if !o.passQueued() {
				return false
			}
			continue
		}
		k, total := o.gather(vec)
		n, err := o.link.TryWrite(vec[:k]...)
		clear(vec[:k])
		if err == transport.ErrAgain {
			return false
		}
		if err != nil {
			o.fail(err)
			return false
		}
		o.written(n)
		if n < total {
			continue // full, most likely: the next write says so
		}
	}
	return false
}

// gather collects the next bytes to write, in the order in which written takes them off.
func (o *output) gather(vec [][]byte) (k, total int) {
	skipped := o.skipped
	add := func(e *entry) bool {
		p := e.buf.b[e.off:e.end]
		if k > 0 {
			// Frames queued in one buffer make one slice.
			if last := vec[k-1]; len(last) < cap(last) && &last[:len(last)+1][len(last)] == &p[0] {
				vec[k-1] = last[:len(last)+len(p)]
				total += len(p)
				return total < maxFlush
			}
		}
		if k == len(vec) {
			return false
		}
		vec[k] = p
		k++
		total += len(p)
		return total < maxFlush
	}
	if o.current.buf != nil && !add(&o.current) {
		return
	}
	for s, b := 0, 0; s < o.small.n || b < o.bulk.n; {
		if o.bulkTurn(o.small.n-s, o.bulk.n-b, skipped) {
			if o.bulk.at(b).pass != nil || !add(o.bulk.at(b)) {
				return
			}
			b++
			skipped = 0
			continue
		}
		e := o.small.at(s)
		if !add(e) {
			return
		}
		s++
		skipped += e.end - e.off
	}
	return
}

// bulkTurn decides which class goes next; small and bulk frames are left.
func (o *output) bulkTurn(small, bulk, skipped int) bool {
	return bulk > 0 && (small == 0 || skipped >= bulkShare)
}

// written takes n bytes off the queues.
func (o *output) written(n int) {
	for n > 0 {
		if o.current.buf == nil {
			if o.bulkTurn(o.small.n, o.bulk.n, o.skipped) {
				o.current = o.bulk.pop()
				o.skipped = 0
			} else {
				o.current = o.small.pop()
				o.skipped += o.current.end - o.current.off
			}
		}
		k := min(n, o.current.end-o.current.off)
		o.current.off += k
		n -= k
		if o.current.off == o.current.end {
			o.release(o.current)
			o.current = entry{}
		}
	}
}

// last drops what is queued, except the rest of a frame that has begun, and puts a final frame of the
// forwarder behind it.
func (o *output) last(vec [][]byte, frame []byte) {
	o.mu.Lock()
	for o.small.n > 0 {
		o.release(o.small.pop())
	}
	for o.bulk.n > 0 {
		o.release(o.bulk.pop())
	}
	o.mu.Unlock()
	o.write(vec, wire.Nobody, frame, nil)
}

// lastly puts a final frame behind everything that is queued.
func (o *output) lastly(vec [][]byte, frame []byte) {
	o.mu.Lock()
	if !o.closed && o.pending() {
		buf, off, end := o.store(frame, true)
		o.bulk.push(entry{buf: buf, off: off, end: end, src: wire.Nobody})
		o.mu.Unlock()
		return
	}
	o.mu.Unlock()
	// Nobody else writes to a link that has said Bye.
	o.write(vec, wire.Nobody, frame, nil)
}

// fail notes the link's failure and leaves the rest to the owner loop.
func (o *output) fail(err error) {
	o.failure = err
	o.discard()
	o.closed = true
	o.broken()
}

// close ends the output and gives its buffers back.
func (o *output) close() {
	o.mu.Lock()
	o.discard()
	o.closed = true
	o.mu.Unlock()
}

func (o *output) discard() {
	if o.current.buf != nil || o.current.pass != nil {
		o.release(o.current)
		o.current = entry{}
	}
	for o.small.n > 0 {
		o.release(o.small.pop())
	}
	for o.bulk.n > 0 {
		o.release(o.bulk.pop())
	}
	o.flows = nil
}
