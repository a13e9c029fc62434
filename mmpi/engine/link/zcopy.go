package link

import (
	"errors"
	"fmt"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/leidenzipper/zipper/internal/list"
	"github.com/leidenzipper/zipper/internal/transport"
	"github.com/leidenzipper/zipper/mmpi/engine/fault"
)

// Over a link that can (transport.Placer) large messages of the program are sent from its memory
// and received into it, without copies. The memory is registered with the link in parts. A receive
// is one part ahead of what has come; a send registers a part when it begins with it. So neither
// holds up the message or other traffic, nor locks much memory for long. What could not be
// registered is copied.

// zcopy is what links know of the program's memory.
type zcopy struct {
	set        *Set
	from       int                      // bytes from which on messages go without copies; 0: none do
	registered list.List[*registration] // that links know something of
	told       bool                     // the user knows that messages are copied
}

// registration is what links know of a message's memory.
type registration struct {
	pins   []pin
	copied bool // nothing more is registered
	listed bool // in Set.registered
	node   list.Node[*registration]
}

// pin is a part of a message's buffer that a rail's link knows.
type pin struct {
	rail     *rail
	from, to int64
	region   transport.Region
}

// may reports whether a message of so many bytes may go without copies.
func (z *zcopy) may(allowed bool, m *registration, bytes int) bool {
	return z.from > 0 && bytes >= z.from && allowed && !m.copied
}

// pin notes what a link knows.
func (z *zcopy) pin(m *registration, p pin) {
	if !m.listed {
		m.listed = true
		z.registered.Push(&m.node)
	}
	m.pins = append(m.pins, p)
}

// unpin takes away what links know of a message, which is over.
func (z *zcopy) unpin(m *registration) {
	for _, p := range m.pins {
		p.region.Release()
	}
	clear(m.pins)
	m.pins, m.copied = m.pins[:0], false
	if m.listed {
		m.listed = false
		z.registered.Remove(&m.node)
	}
}

// unpinRail takes away what the link of a lost rail knows.
func (z *zcopy) unpinRail(r *rail) {
	for n := z.registered.First(); n != nil; n = n.Next() {
		m := n.Of
		m.pins = slices.DeleteFunc(m.pins, func(p pin) bool {
			if p.rail == r {
				p.region.Release()
			}
			return p.rail == r
		})
	}
}

// fallbackToCopy: the rest of the message is copied. The user is told why, once.
func (z *zcopy) fallbackToCopy(m *registration, why error) {
	m.copied = true
	// Memory that is not there cannot be registered, either: the copy finds out (memory.go).
	if errors.Is(why, transport.ErrClosed) || errors.Is(why, unix.EFAULT) || z.told || z.set.warn == nil {
		return
	}
	z.told = true
	z.set.warn(fmt.Sprintf("large messages are copied, because the program's memory cannot be registered: %v", why))
}

// blames reports whether an error of a link is about the program's memory (fault.Memory.Blames).
func blames(s *Set, err error, mem []byte, writes bool, owner func() string) bool {
	yes, hopeless := s.Memory.Blames(err, mem, writes, owner)
	if hopeless != nil {
		s.upper.Fatal(fault.Arg, 1, hopeless.Error())
	}
	return yes
}

// piece sends the segment at hand as one piece.
func (r *rail) piece() error {
	s := &r.seg
	if src := s.src; src != nil && r.placer != nil && r.set.zcopy.may(src.Zcopy, &src.mem, len(src.Buf)) {
		if p := r.pinned(src, s.offset, len(s.data)); p != nil {
			return r.placer.TrySendPinned(s.head, p.region, int(s.offset-p.from), len(s.data))
		}
	}
	return r.lender.TrySend(s.head, s.data)
}

// pinned gives the part of a Source that n bytes at an offset lie in, as the rail's link knows it;
// nil: it does not.
func (r *rail) pinned(src *Source, offset int64, n int) *pin {
	m := &src.mem
	i := 0
	for ; i < len(m.pins); i++ {
		if p := &m.pins[i]; p.rail == r {
			if p.from <= offset && offset+int64(n) <= p.to {
				return p
			}
			break
		}
	}
	from := offset - offset%part // the same for each sending of the buffer: it may be known still
	if from+part < offset+int64(n) {
		from = offset
	}
	to := min(from+part, int64(len(src.Buf)))
	region, err := r.placer.Pin(src.Buf[from:to])
	if err != nil {
		r.set.zcopy.fallbackToCopy(m, err)
		return nil
	}
	p := pin{r, from, to, region}
	if i == len(m.pins) {
		r.set.zcopy.pin(m, p)
	} else {
		m.pins[i].region.Release()
		m.pins[i] = p
	}
	return &m.pins[i]
}

// expect registers the next parts of a receive with the link that they come over, if that is the
// only one. After a loss something may come a second time over another link, and would be written
// into memory that is the program's again.
func (z *zcopy) expect(k *Sink) {
	if k.peer.scattered() || !z.may(k.Zcopy, &k.mem, len(k.Buf)) {
		return
	}
	r := k.peer.rail()
	if r == nil || r.placer == nil || r.reborn {
		return
	}
	for k.expected < int64(len(k.Buf)) && len(k.mem.pins) < partsAhead {
		to := min(k.expected+part, int64(len(k.Buf)))
		region, err := r.placer.Expect(k.Handle, k.expected, k.Buf[k.expected:to])
		if errors.Is(err, transport.ErrAgain) {
			return
		}
		if err != nil {
			z.fallbackToCopy(&k.mem, err)
			return
		}
		z.pin(&k.mem, pin{r, k.expected, to, region})
		k.expected = to
	}
}

// expectMore takes away the parts of a receive that are whole, and registers others.
func (z *zcopy) expectMore(k *Sink) {
	if z.from == 0 || k.arrived == int64(len(k.Buf)) {
		return
	}
	m := &k.mem
	for len(m.pins) > 0 && m.pins[0].to <= k.arrived {
		m.pins[0].region.Release()
		m.pins = append(m.pins[:0], m.pins[1:]...)
	}
	k.expected = max(k.expected, k.arrived)
	z.expect(k)
}
