package relay

import (
	"sync"
	"sync/atomic"

	"github.com/leidenzipper/zipper/internal/transport"
	"github.com/leidenzipper/zipper/internal/transport/splice"
	"github.com/leidenzipper/zipper/internal/wire"
)

// output is the writing side of a link. Any loop writes to it directly while nothing is queued.
// Bytes that the link does not accept are queued, and from then on only the owner loop writes,
// whenever the link is writable again.
//
// There are two queues: bulk frames (Data), and all others, which overtake them. Order inside a
// class is kept, so the sequenced frames of a flow stay in order.
type output struct {
	mu     sync.Mutex
	link   transport.Link
	lender transport.Lender // the link, if it supports blocks; otherwise nil
	// placer is the link, if it can place payload in receive buffers; otherwise nil.
	placer  transport.Placer
	piper   splice.Link // the link, if it supports pipes; otherwise nil
	pool    *pool
	arm     func(on bool) // asks the owner loop to report when the link is writable, or not to
	broken  func()        // asks the owner loop to end the connection
	closed  bool
	current entry           // the unwritten rest of a frame, which is written before all others; empty: none
	count   entry           // the Count that follows current, if any
	sent    uint64          // the number of bytes that the link has accepted
	counts  uint64          // the number of Counts that have been sent or queued
	counted uint64          // the value that sent has after the last Count
	small   fifo            // the queued frames that are not bulk
	bulk    fifo            // the queued bulk frames
	ahead   int             // the number of frames in small from before Running, which nothing may overtake
	depth   atomic.Int64    // the number of bytes in the queue
	skipped int             // the number of bytes of small frames that were written since the last bulk frame
	flows   map[uint32]flow // the number of bytes that each rank has queued here, by rank
	limits  limits          // the maximum numbers of bytes that one rank may have queued here
	failure error           // the error of the link, because of which the owner ends the connection
	watched                 // the statistics of the waiting times and lengths of the queue
}

// write writes the whole frames in b from rank src directly if the link accepts them, and queues
// the rest. from is the memory account of the connection that they arrived over; nil if they are
// the forwarder's own. vec is the caller's scratch of length 1. A non-nil owner holds b and nothing
// else; taken reports that the queue keeps it. An error means that src has too many bytes queued.
func (o *output) write(vec [][]byte, from *memory, src uint32, b []byte, owner *buffer) (taken bool, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.put(vec, from, src, b, owner)
}

// put writes or queues the whole frames in b from rank src. Its parameters and results are those of
// write, but the caller holds o.mu.
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
		if n > 0 { // the kernel accepted a part, so the link is probably full
			n, err = o.more(vec, b, n)
			if err != nil || n == len(b) {
				return false, nil
			}
		}
		o.arm(true)
	}
	return o.enqueue(from, src, b, n, owner)
}

// more writes the rest of b, of which the link has accepted n bytes, because a socket's buffer may
// have a little room left. It returns the number of bytes of b that are written in all.
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

// flush writes the queue until the link accepts no more or a fair share is done. Only the owner
// loop calls it; vec is its scratch, of length maxIov. done reports that the queue is empty.
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
			clear(o.flows) // all are zero, and departed sources leave no entry behind
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
			continue // the link is probably full; the next write tells
		}
	}
	return false
}

// gather fills vec with the next pieces of the queue to write, in the order in which written
// removes them. It returns the number of pieces and of bytes.
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

// written removes the next n bytes from the queues, because the link has accepted them.
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

// abortWith discards the queue except for the rest of a partly written frame, and sends a last
// frame of the forwarder behind that.
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
	// the queue is empty, so no limit is exceeded
	_, _ = o.write(make([][]byte, 1), nil, wire.Nobody, frame, nil)
}

// finishWith queues frame as the last one, behind all others.
func (o *output) finishWith(frame []byte) {
	o.mu.Lock()
	if !o.closed && o.pending() {
		buf, off, end := o.store(frame, true)
		o.bulk.push(entry{buf: buf, off: off, end: end, src: wire.Nobody})
		o.mu.Unlock()
		return
	}
	o.mu.Unlock()
	// No other frame is written to a link after Bye.
	_, _ = o.write(make([][]byte, 1), nil, wire.Nobody, frame, nil)
}

// cause returns the error with which the link has failed, or nil.
func (o *output) cause() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.failure
}

// waits reports whether anything is queued. It takes o.mu itself.
func (o *output) waits() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.pending()
}

// close ends the output: it drops what is queued, and accepts no more.
func (o *output) close() {
	o.mu.Lock()
	o.discard()
	o.closed = true
	o.mu.Unlock()
}
