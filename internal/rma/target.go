package rma

import (
	"bytes"
	"fmt"
)

// Receive handles a message from another process, or from this one: messages from Next with this
// process's rank must be passed here. b is not kept, but its data may be converted in place. An
// error means that a program or a peer broke the protocol; the job cannot continue.
func (n *Node) Receive(from int, b []byte) error {
	if from < 0 || from >= n.cfg.Size {
		return fmt.Errorf("rma: message from rank %d of %d", from, n.cfg.Size)
	}
	if len(b) > 0 && Verb(b[0]) < post && n.locks.waits(from) {
		return n.keep(from, b)
	}
	m, err := parse(b, n.runs)
	if err != nil {
		return err
	}
	n.runs = m.runs
	switch m.verb {
	case Put, Get, Accumulate, Fetch, Swap:
		err = n.serve(from, &m)
	case lock:
		if n.locks.request(lockRequest{from, m.id, m.fn != 0}) {
			n.send(from, &message{verb: ack, id: m.id})
		}
	case unlock:
		n.send(from, &message{verb: ack, id: m.id})
		err = n.release(from)
	case flush:
		n.send(from, &message{verb: ack, id: m.id})
	case complete:
		n.send(from, &message{verb: ack, id: m.id})
		if p := &n.peers[from]; p.expected {
			p.expected = false
			n.finish(n.closing)
		} else {
			p.completes++
		}
	case post:
		if p := &n.peers[from]; p.awaited {
			p.awaited = false
			n.finish(n.start)
		} else {
			p.posts++
		}
	case ack, reply:
		err = n.answer(from, &m)
	default:
		err = fmt.Errorf("rma: verb %d", m.verb)
	}
	return err
}

// keep stores a message until its origin has the lock.
func (n *Node) keep(from int, b []byte) error {
	k := n.stalled[from]
	if k == nil {
		k = &backlog{}
		n.stalled[from] = k
	}
	if k.bytes += len(b); k.bytes > maxKept {
		return fmt.Errorf("rma: rank %d waits for the lock and has sent %d bytes, more than may be on their way", from,
			k.bytes)
	}
	k.messages = append(k.messages, bytes.Clone(b))
	return nil
}

// release passes an origin's lock on to waiting origins, and handles their stored messages.
func (n *Node) release(rank int) error {
	granted, ok := n.locks.release(rank)
	if !ok {
		return fmt.Errorf("rma: rank %d unlocks without a lock", rank)
	}
	for _, g := range granted {
		n.send(g.rank, &message{verb: ack, id: g.id})
	}
	for _, g := range granted {
		kept := n.stalled[g.rank]
		delete(n.stalled, g.rank)
		if kept == nil {
			continue
		}
		for _, b := range kept.messages {
			if err := n.Receive(g.rank, b); err != nil {
				return err
			}
		}
	}
	return nil
}

// answer handles a target's answer to an operation of this process.
func (n *Node) answer(from int, m *message) error {
	p, ok := n.pending[m.id]
	if !ok || p.target != from || (m.verb == reply) != (p.runs != nil) {
		return fmt.Errorf("rma: unsolicited answer from rank %d", from)
	}
	delete(n.pending, m.id)
	if m.verb == reply {
		if want := total(p.runs); int64(len(m.data)) != want {
			return fmt.Errorf("rma: rank %d answers with %d bytes, want %d", from, len(m.data), want)
		}
		n.cfg.recode(p.kind, m.data, true)
		if err := scatter(p.space, p.runs, m.data); err != nil {
			return err
		}
	}
	o := &n.peers[from]
	o.acked = max(o.acked, p.sent)
	o.flight -= p.bytes
	o.granted = o.granted || p.grants
	n.finish(p.w)
	for _, w := range p.also {
		n.finish(w)
	}
	return nil
}

// memory returns size bytes of the window, off bytes from a displacement, and whether they are in
// memory of a device.
func (n *Node) memory(disp, off int64, size uint32) (mem []byte, device bool, err error) {
	addr := uint64(disp + off)
	if !n.cfg.Dynamic {
		addr = uint64(disp*n.cfg.Unit + off)
	}
	if i := n.regionAt(addr); i < len(n.regions) && n.regions[i].addr <= addr {
		r := &n.regions[i]
		if at := addr - r.addr; uint64(size) <= uint64(len(r.mem))-at {
			return r.mem[at:][:size], r.device, nil
		}
		// For a program, memory that was attached in two adjacent parts is one.
		if n.cfg.Across != nil && n.covered(i, addr, uint64(size)) {
			return n.cfg.Across(addr, int(size)), r.device, nil
		}
	}
	return nil, false, fmt.Errorf("%w: %d bytes at displacement %d", ErrRange, size, disp)
}

// serve carries out an operation on this process's memory.
func (n *Node) serve(from int, m *message) error {
	var answer []byte
	if m.verb != Put && m.verb != Accumulate {
		r := message{verb: reply, id: m.id}
		answer = r.appendHead(n.buffer())
	}
	head, data := len(answer), m.data
	n.cfg.recode(m.kind, data, true)
	for _, r := range m.runs {
		for i := int64(0); i < int64(r.Count); i++ {
			mem, device, err := n.memory(m.disp, r.Off+i*r.Stride, r.Len)
			if err == nil && device {
				answer, data, err = n.cfg.operateOnDevice(m, mem, data, answer)
			} else if err == nil {
				answer, data, err = n.cfg.operate(m, mem, data, answer)
			}
			if err != nil {
				return fmt.Errorf("operation of rank %d: %w", from, err)
			}
		}
	}
	if answer != nil {
		n.cfg.recode(m.kind, answer[head:], false)
		n.out = append(n.out, Outgoing{from, answer})
	}
	return nil
}

// writes reports whether an operation writes to the target's memory.
func (m *message) writes() bool { return m.verb != Get && (m.verb != Fetch || m.fn != NoOp) }

// operate carries out the part of an operation that concerns mem. It appends the former content to
// answer, unless that is nil, takes mem's part from the front of data, and returns both.
func (c *Config) operate(m *message, mem, data, answer []byte) (newAnswer, rest []byte, err error) {
	if answer != nil {
		answer = append(answer, mem...)
	}
	if !m.writes() {
		return answer, data, nil
	}
	size := len(mem)
	in := data[:size]
	data = data[size:]
	switch {
	case m.verb == Swap:
		if bytes.Equal(mem, data[:size]) {
			copy(mem, in)
		}
		data = data[size:]
	case m.verb == Put || m.fn == Replace:
		copy(mem, in)
	case m.fn != NoOp:
		err = c.Compute(m.fn, m.kind, mem, in)
	}
	return answer, data, err
}

// operateOnDevice does what operate does for memory of a device, on a copy of it.
func (c *Config) operateOnDevice(m *message, mem, data, answer []byte) (newAnswer, rest []byte, err error) {
	if m.verb == Put {
		return answer, data[len(mem):], c.Copy(mem, data[:len(mem)])
	}
	staged := make([]byte, len(mem))
	if err = c.Copy(staged, mem); err == nil {
		answer, data, err = c.operate(m, staged, data, answer)
	}
	if err == nil && m.writes() {
		err = c.Copy(mem, staged)
	}
	return answer, data, err
}
