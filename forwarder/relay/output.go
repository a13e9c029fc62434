package relay

import (
	"sync"
	"sync/atomic"

	"github.com/leidenzipper/zipper/internal/transport"
	"github.com/leidenzipper/zipper/internal/wire"
)

// output is the writing side of a link. Any loop writes to it directly while nothing is queued;
// what the link does not take is queued, and from then on only the owner loop writes, when the link
// is writable again.
//
// Two queues: frames of bulk (Data) and all others, which overtake. Order inside a class is kept,
// so the sequenced frames of a flow stay in order.
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
	current entry  // rest of a frame whose beginning is written: goes first
	count   entry  // a Count, which goes right after that
	sent    uint64 // bytes that the link took
	counts  uint64 // Counts before
	counted uint64 // sent, at the last of them
	small   fifo
	bulk    fifo
	ahead   int             // of small: queued before the connection ran, so nothing may overtake them
	depth   atomic.Int64    // bytes that are queued
	skipped int             // bytes of small frames written since the last bulk frame
	flows   map[uint32]flow // by source
	limits  limits
	failure error // of the link; the owner tears it down
	watched       // how long frames wait
}

// write sends whole frames from src, which came over a connection (nil: they are our own), directly
// if it can. vec is the caller's scratch of length 1. When owner is not nil it holds b and nothing
// else, and taken reports that the queue keeps it. The error blames the source.
func (o *output) write(vec [][]byte, from *memory, src uint32, b []byte, owner *buffer) (taken bool, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.put(vec, from, src, b, owner)
}

// put is write with o.mu.
func (o *output) put(vec [][]byte, from *memory, src uint32, b []byte, owner *buffer) (taken bool, err error) {
	if o.closed {
		return false, nil
	}
	n := 0
	if !o.pending() {
		vec[0] = b
		n, err = o.link.TryWrite(vec...)
		o.sent += uint64(n)
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
	return o.enqueue(from, src, b, n, owner)
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
		o.sent += uint64(k)
		n += k
	}
	return n, nil
}

// flush writes what is queued until the link takes no more or a fair share is done. Owner loop
// only; vec is its scratch, of length maxIov. done reports that nothing is left.
func (o *output) flush(vec [][]byte) (done bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for range writeTurns {
		if o.closed {
			return true
		}
		if !o.pending() {
			o.arm(false)
			o.unblocked()
			clear(o.flows) // all zero; sources that are gone leave nothing behind
			return true
		}
		if o.zerocopyNext() {
			if !o.forwardQueued() {
				return false
			}
			continue
		}
		k, total := o.gather(vec)
		n, err := o.link.TryWrite(vec[:k]...)
		clear(vec[:k])
		o.sent += uint64(n)
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
	if o.current.buf != nil && !add(&o.current) || o.count.buf != nil && !add(&o.count) {
		return
	}
	for s, b := 0, 0; s < o.small.n || b < o.bulk.n; {
		if o.bulkTurn(s, b, skipped) {
			if o.bulk.at(b).zc != nil || !add(o.bulk.at(b)) {
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

// written takes n bytes off the queues.
func (o *output) written(n int) {
	for n > 0 {
		if o.current.buf == nil && o.count.buf != nil {
			o.current, o.count = o.count, entry{}
		}
		if o.current.buf == nil {
			if o.bulkTurn(0, 0, o.skipped) {
				o.current = o.bulk.pop()
				o.skipped = 0
			} else {
				o.current = o.small.pop()
				o.ahead = max(o.ahead-1, 0)
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

// abortWith drops what is queued, except the rest of a frame that has begun, and puts a final frame
// of the forwarder behind it.
func (o *output) abortWith(frame []byte) {
	o.mu.Lock()
	o.ahead = 0
	for o.small.n > 0 {
		o.release(o.small.pop())
	}
	for o.bulk.n > 0 {
		o.release(o.bulk.pop())
	}
	o.mu.Unlock()
	_, _ = o.write(make([][]byte, 1), nil, wire.Nobody, frame, nil) // nothing waits, so it is not too much
}

// finishWith puts a final frame behind everything that is queued.
func (o *output) finishWith(frame []byte) {
	o.mu.Lock()
	if !o.closed && o.pending() {
		buf, off, end := o.store(frame, true)
		o.bulk.push(entry{buf: buf, off: off, end: end, src: wire.Nobody})
		o.mu.Unlock()
		return
	}
	o.mu.Unlock()
	// Nobody else writes to a link that has said Bye.
	_, _ = o.write(make([][]byte, 1), nil, wire.Nobody, frame, nil)
}

// cause is the link's failure.
func (o *output) cause() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.failure
}

// waits reports whether something is queued.
func (o *output) waits() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.pending()
}

// close ends the output and gives its buffers back.
func (o *output) close() {
	o.mu.Lock()
	o.discard()
	o.closed = true
	o.mu.Unlock()
}
