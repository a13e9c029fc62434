package job

import (
	"encoding/binary"
	"hash/maphash"

	"github.com/leidenzipper/zipper/internal/wire"
)

// A world is packed into some fifty bytes, which name the states of its forwarders by their
// numbers. They identify the world's state, and wait in the queue of a search.

var seed = maphash.MakeSeed()

// hash identifies the world's state.
func (w *world) hash() uint64 { return maphash.Bytes(seed, w.pack(nil)) }

// finished is the code of a process that does nothing more.
const finished = 1 << 7

// pack appends the packed world to b.
func (w *world) pack(b []byte) []byte {
	for _, z := range w.zips {
		b = binary.AppendUvarint(b, uint64(z.id))
	}
	for i := range w.ranks {
		p, n, more := &w.ranks[i], len(w.places[i].zips), false
		for _, l := range p.links[:n] {
			more = more || l.open || !p.dead && !p.over && !l.bye
		}
		if !more {
			b = append(b, finished)
			continue
		}
		b = append(b, bits(p.began, p.dead, p.over, p.links[0].open, p.links[0].bye, p.links[1].open, p.links[1].bye))
	}
	for n := range w.pipes {
		p := &w.pipes[n]
		b = append(b, byte(p.at[0]<<4|p.at[1]), byte(p.number),
			bits(p.there, p.closed[0], p.closed[1], p.ending[0], p.ending[1]), bits(p.cut, p.asked, p.answered), byte(p.rejected))
		for _, q := range p.queue {
			b = append(b, byte(len(q)))
			for _, frame := range q {
				b = binary.AppendUvarint(b, uint64(frame))
			}
		}
	}
	return b
}

// unpack returns a packed world.
func (m *model) unpack(b []byte) *world {
	w := &world{model: m, zips: make([]*local, m.zips), ranks: make([]process, len(m.places))}
	number := func() int {
		v, n := binary.Uvarint(b)
		b = b[n:]
		return int(v)
	}
	octet := func() byte {
		c := b[0]
		b = b[1:]
		return c
	}
	for f := range w.zips {
		w.zips[f] = m.states[number()]
	}
	for i := range w.ranks {
		p, c := &w.ranks[i], octet()
		if c == finished {
			p.began, p.over = true, true
			continue
		}
		unbits(c, &p.began, &p.dead, &p.over, &p.links[0].open, &p.links[0].bye, &p.links[1].open, &p.links[1].bye)
	}
	for len(b) > 0 {
		c := octet()
		p := pipe{at: [2]int{int(c >> 4), int(c & 15)}, number: int(octet())}
		unbits(octet(), &p.there, &p.closed[0], &p.closed[1], &p.ending[0], &p.ending[1])
		unbits(octet(), &p.cut, &p.asked, &p.answered)
		p.rejected = wire.RefuseCode(octet())
		for side := range p.queue {
			for range octet() {
				p.queue[side] = append(p.queue[side], number())
			}
		}
		w.pipes = append(w.pipes, p)
	}
	return w
}

// bits returns flags as the bits of a byte, the first one lowest.
func bits(flags ...bool) (b byte) {
	for i, f := range flags {
		if f {
			b |= 1 << i
		}
	}
	return b
}

// unbits sets flags to the bits of b.
func unbits(b byte, flags ...*bool) {
	for i, f := range flags {
		*f = b&(1<<i) != 0
	}
}
