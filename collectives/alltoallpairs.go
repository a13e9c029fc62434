package collectives

import (
	"encoding/binary"
	"fmt"
)

// alltoallPairs returns the schedule of an alltoall by partners. Between clusters of a and b ranks
// every rank sends its blocks for another cluster together, to one rank of it, its partner. The
// partner passes them on, with its own blocks for its cluster, by a native alltoall. So there are
// as many messages as the sending cluster has ranks, in place of a·b. In return, blocks cross a
// link inside the receivers' cluster once more, so blocks of more than Tuning.Pair bytes are sent
// directly to their receivers.
//
//	time L + a·b·m·G + λ; bytes a·b·m, messages a
//
// If ranks do not know each other's counts, the lengths of blocks are sent before them, 4 bytes
// each: bytes a·b·(m+4). Partners and receivers know the sizes of messages between them from these
// and from their own counts.
func alltoallPairs(e *env, a Args) Schedule {
	p := &pairs{e: e, a: a, most: int64(e.t.Pair)}
	return Schedule{p.cross, p.passOn, func() ([]Request, error) { p.unpack(); return nil, nil }}
}

// pairs is the state that the rounds share.
type pairs struct {
	e    *env
	a    Args
	most int64 // largest size of a block that a partner passes on

	arrived [][]byte // messages from other clusters to this process as partner, in the order of sources
	rest    batch    // requests that only the end waits for
	in      []byte   // receive buffer of the native alltoall
}

// small returns n if a partner passes on a block of n bytes, and 0 otherwise.
func (p *pairs) small(n int64) int64 {
	if n > p.most {
		return 0
	}
	return n
}

// lengths returns the size of the lengths before n blocks, in bytes.
func (p *pairs) lengths(n int) int {
	if p.a.Uniform {
		return 0
	}
	return 4 * n
}

// These are the stages of the messages between clusters.
const (
	together = iota
	itself
)

// cross starts everything between clusters, and the large blocks inside. It waits for the blocks
// that this process has to pass on.
func (p *pairs) cross() ([]Request, error) {
	e, a, n := p.e, p.a, p.e.local.Size()
	var b batch
	e.l.sources(e.local.Rank(), func(r int) {
		from := e.Scratch(p.lengths(n) + n*int(p.most))
		if a.Uniform {
			from = from[:n*int(a.SendCounts[0])]
			b.add(e.Recv(r, together, from))
		} else {
			b.add(e.RecvAtMost(r, together, from))
		}
		p.arrived = append(p.arrived, from)
	})
	e.l.others(func(k int) { p.rest.add(e.Send(e.l.partner(k), together, p.packed(e.l.Members(k)))) })
	if !a.Uniform {
		p.large()
	}
	if b.err == nil {
		b.err = p.rest.err
	}
	return b.reqs, b.err
}

// packed returns this process's blocks for the ranks of another cluster, one after the other.
func (p *pairs) packed(ranks []int) []byte {
	head, total := p.lengths(len(ranks)), 0
	for _, r := range ranks {
		total += int(p.small(p.a.SendCounts[r]))
	}
	out := p.e.Scratch(head + total)
	rest := out[head:]
	for i, r := range ranks {
		n := p.small(p.a.SendCounts[r])
		if head > 0 {
			binary.LittleEndian.PutUint32(out[4*i:], uint32(n))
		}
		rest = rest[copy(rest, block(p.a.Send, n, p.a.SendDispls[r])):]
	}
	return out
}

// large starts the blocks that no partner passes on.
func (p *pairs) large() {
	e, a := p.e, p.a
	across := func(f func(rank int)) {
		e.l.others(func(k int) {
			n := len(e.l.Members(k))
			for i := range n { // ranks begin with different peers
				f(e.l.Members(k)[(e.local.Rank()+i)%n])
			}
		})
	}
	across(func(r int) {
		if n := a.RecvCounts[r]; n > p.most {
			e.chunks(block(a.Recv, n, a.RecvDispls[r]), func(b []byte) { p.rest.add(e.Recv(r, itself, b)) })
		}
	})
	across(func(r int) {
		if n := a.SendCounts[r]; n > p.most {
			e.chunks(block(a.Send, n, a.SendDispls[r]), func(b []byte) { p.rest.add(e.Send(r, itself, b)) })
		}
	})
	k := e.l.Cluster
	scounts, rcounts := e.l.pick(a.SendCounts, k), e.l.pick(a.RecvCounts, k)
	for i := range scounts {
		scounts[i], rcounts[i] = scounts[i]-p.small(scounts[i]), rcounts[i]-p.small(rcounts[i])
	}
	p.rest.add(e.local.Alltoallv(a.Send, scounts, e.l.pick(a.SendDispls, k), a.Recv, rcounts, e.l.pick(a.RecvDispls, k)))
}

// parts returns the blocks in a message from a source, in the order of ranks here. A message with
// an impossible length is an error; the block with that length and all behind it count as empty.
func (p *pairs) parts(from []byte, list [][]byte) error {
	n, head := len(list), p.lengths(len(list))
	rest := from[head:]
	for i := range n {
		m := p.a.SendCounts[0]
		if head > 0 {
			m = int64(binary.LittleEndian.Uint32(from[4*i:]))
		}
		if m > p.most || m > int64(len(rest)) {
			return fmt.Errorf("all to all: received a block of %d bytes, at most %d are possible", m, p.most)
		}
		list[i], rest = rest[:m], rest[m:]
	}
	return nil
}

// passOn starts the native alltoall: for each rank here this process's block, then the sources'.
func (p *pairs) passOn() ([]Request, error) {
	e, a, ranks := p.e, p.a, p.e.l.mine()
	var b batch
	came, total := make([][][]byte, len(p.arrived)), 0
	for i, from := range p.arrived {
		came[i] = make([][]byte, len(ranks))
		b.add(nil, p.parts(from, came[i]))
		for _, part := range came[i] {
			total += len(part)
		}
	}
	x := newMoves(len(ranks))
	for i, r := range ranks {
		total += int(p.small(a.SendCounts[r]))
		n := p.small(a.RecvCounts[r])
		e.l.sources(i, func(s int) { n += p.small(a.RecvCounts[s]) })
		x.receive(i, n)
	}
	out := e.Scratch(total)
	rest := out
	for i, r := range ranks {
		n := copy(rest, block(a.Send, p.small(a.SendCounts[r]), a.SendDispls[r]))
		for _, parts := range came {
			n += copy(rest[n:], parts[i])
		}
		x.send(i, int64(n))
		rest = rest[n:]
	}
	p.in = e.Scratch(int(x.received))
	b.add(x.start(e.local, out, p.in))
	return append(b.reqs, p.rest.reqs...), b.err
}

// unpack copies the blocks from the native alltoall to their places.
func (p *pairs) unpack() {
	rest := p.in
	take := func(r int) {
		rest = rest[copy(block(p.a.Recv, p.small(p.a.RecvCounts[r]), p.a.RecvDispls[r]), rest):]
	}
	for i, r := range p.e.l.mine() {
		take(r)
		p.e.l.sources(i, take)
	}
}
