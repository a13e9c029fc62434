package engine

import "github.com/leidenzipper/zipper/wire"

// frame is an outgoing frame other than Data, in memory of its own. Sequenced ones are retained until acknowledged.
type frame struct {
	buf        []byte // header, body, payload; pooled
	off        int    // bytes written
	seq        uint64 // 0: not sequenced, or no longer retained
	peer       *peer  // nil: for the forwarder
	rail       *rail  // that it was given to last; nil: none reached the peer
	replayed   bool   // given to a rail more than once
	queued     bool   // in the rail's queue
	background bool   // does not keep the engine busy: the program does not wait for it
	nextOut    *frame
	nextKept   *frame
}

// frameQueue is a list through nextOut (a rail's output) or nextKept (a peer's retained frames).
type frameQueue struct{ head, tail *frame }

func (q *frameQueue) push(f *frame) {
	f.nextOut = nil
	if q.tail == nil {
		q.head = f
	} else {
		q.tail.nextOut = f
	}
	q.tail = f
}

func (q *frameQueue) pop() {
	f := q.head
	q.head, f.nextOut = f.nextOut, nil
	if q.head == nil {
		q.tail = nil
	}
}

func (q *frameQueue) pushRetained(f *frame) {
	f.nextKept = nil
	if q.tail == nil {
		q.head = f
	} else {
		q.tail.nextKept = f
	}
	q.tail = f
}

func (q *frameQueue) popRetained() {
	f := q.head
	q.head, f.nextKept = f.nextKept, nil
	if q.head == nil {
		q.tail = nil
	}
}

// newFrame starts a frame to a peer: the header is written, with room for body and payload after it.
func (e *Engine) newFrame(p *peer, t wire.Type, flags uint8, body, payload int) *frame {
	f := e.takeFrame(wire.HeaderLen + body + payload)
	h := wire.Header{Type: t, Flags: flags, Epoch: 1, Length: uint32(body + payload), Src: uint32(e.world.Rank), Dst: uint32(p.rank), Ack: p.order.Ack()}
	if t.Sequenced() {
		h.Seq = p.numbers.Next()
	}
	f.peer, f.seq, f.background = p, h.Seq, !t.Sequenced()
	f.buf = h.Append(f.buf)
	return f
}

// newControl makes a frame for the forwarder at the other end of the link.
func (e *Engine) newControl(t wire.Type, body wire.Body) *frame {
	b := wire.AppendFrame(nil, wire.Header{Type: t, Src: wire.Nobody, Dst: wire.Nobody}, body)
	f := e.takeFrame(len(b))
	f.background = true
	f.buf = append(f.buf, b...)
	return f
}

func (e *Engine) takeFrame(n int) *frame {
	var f *frame
	if k := len(e.frames); k > 0 {
		f = e.frames[k-1]
		e.frames = e.frames[:k-1]
	} else {
		f = new(frame)
	}
	f.buf = e.pool.get(n)[:0]
	return f
}

func (e *Engine) freeFrame(f *frame) {
	e.pool.put(f.buf)
	*f = frame{}
	e.frames = append(e.frames, f)
}

// enqueue gives a frame to a rail that reaches the peer; write puts it on the link. If there is none now, sequenced frames wait for one;
// what others say is said again then.
func (e *Engine) enqueue(p *peer, f *frame) {
	if f.seq != 0 {
		p.retained.pushRetained(f)
		e.unacked++
	}
	r := e.way(p)
	switch {
	case r != nil:
		f.rail = r
		r.push(f)
	case f.seq == 0:
		e.freeFrame(f)
	}
}
