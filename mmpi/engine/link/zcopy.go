package link

import (
	"errors"
	"fmt"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/leidenzipper/zipper/internal/list"
	"github.com/leidenzipper/zipper/internal/transport"
)

// Over a link that can do so (transport.Placer) large messages of the program are sent from its
// memory and received into it, without copies. The memory is registered with the link in parts. A
// receive registers one part ahead of what has arrived, a send registers a part when it begins with
// it. So registration delays neither the message nor other traffic, and little memory is locked at
// a time. What cannot be registered is copied.

// zcopy has what links know of the program's memory.
type zcopy struct {
	from       int                      // messages of at least so many bytes go without copies; 0: none
	warn       func(string)             // Config.Warn
	registered list.List[*registration] // those of which some link knows a part
	warned     bool                     // The user knows that messages are copied.
}

// registration is what links know of one message's memory.
type registration struct {
	pins   []pin
	copied bool   // No further parts are registered.
	owner  *zcopy // has it in registered; nil: not registered
	node   list.Node[*registration]
}

// pin is a part of a message's memory that a link knows.
type pin struct {
	placer   transport.Placer // the link
	from, to int64            // offsets in the message
	region   transport.Region
}

// may reports whether a message of so many bytes may go without copies. allowed is what its owner
// says.
func (z *zcopy) may(allowed bool, m *registration, bytes int) bool {
	return z.from > 0 && bytes >= z.from && allowed && !m.copied
}

// pin notes a part that a link knows.
func (z *zcopy) pin(m *registration, p pin) {
	if m.owner == nil {
		m.owner = z
		z.registered.Push(&m.node)
	}
	m.pins = append(m.pins, p)
}

// release takes back what links know of a message that is complete.
func (m *registration) release() {
	for _, p := range m.pins {
		p.region.Release()
	}
	clear(m.pins)
	m.pins, m.copied = m.pins[:0], false
	if m.owner != nil {
		m.owner.registered.Remove(&m.node)
		m.owner = nil
	}
}

// releaseUpTo takes back the parts before an offset.
func (m *registration) releaseUpTo(offset int64) {
	for len(m.pins) > 0 && m.pins[0].to <= offset {
		m.pins[0].region.Release()
		m.pins = append(m.pins[:0], m.pins[1:]...)
	}
}

// releaseLink takes back what a lost link knows.
func (z *zcopy) releaseLink(placer transport.Placer) {
	if placer == nil {
		return
	}
	for n := z.registered.First(); n != nil; n = n.Next() {
		m := n.Of
		m.pins = slices.DeleteFunc(m.pins, func(p pin) bool {
			if p.placer == placer {
				p.region.Release()
			}
			return p.placer == placer
		})
	}
}

// fallbackToCopy has the rest of a message copied. The user is told the reason, once.
func (z *zcopy) fallbackToCopy(m *registration, why error) {
	m.copied = true
	// Memory that does not exist cannot be registered either: the copy reports that.
	if errors.Is(why, transport.ErrClosed) || errors.Is(why, unix.EFAULT) || z.warned || z.warn == nil {
		return
	}
	z.warned = true
	z.warn(fmt.Sprintf("large messages are copied, because the program's memory cannot be registered: %v", why))
}

// pinned returns the part of a message's memory that has n bytes at an offset, as a link knows it;
// nil: it cannot be registered.
func (z *zcopy) pinned(placer transport.Placer, m *registration, mem []byte, offset int64, n int) *pin {
	i := slices.IndexFunc(m.pins, func(p pin) bool { return p.placer == placer })
	if i >= 0 {
		if p := &m.pins[i]; p.from <= offset && offset+int64(n) <= p.to {
			return p
		}
	}
	from := offset - offset%part // the same for each sending of the buffer, so the link may still know it
	if from+part < offset+int64(n) {
		from = offset
	}
	to := min(from+part, int64(len(mem)))
	region, err := placer.Pin(mem[from:to])
	if err != nil {
		z.fallbackToCopy(m, err)
		return nil
	}
	p := pin{placer, from, to, region}
	if i < 0 {
		z.pin(m, p)
		return &m.pins[len(m.pins)-1]
	}
	m.pins[i].region.Release()
	m.pins[i] = p
	return &m.pins[i]
}

// expect registers the next parts of a receive, up to partsAhead at a time, and returns up to where
// it is registered. key names the receive, which is registered up to from.
func (z *zcopy) expect(placer transport.Placer, m *registration, key uint64, mem []byte, from int64) int64 {
	for from < int64(len(mem)) && len(m.pins) < partsAhead {
		to := min(from+part, int64(len(mem)))
		region, err := placer.Expect(key, from, mem[from:to])
		if errors.Is(err, transport.ErrAgain) {
			break
		}
		if err != nil {
			z.fallbackToCopy(m, err)
			break
		}
		z.pin(m, pin{placer, from, to, region})
		from = to
	}
	return from
}
