package link

import (
	"errors"
	"fmt"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/leidenzipper/zipper/internal/list"
	"github.com/leidenzipper/zipper/internal/transport"
)

// Over a link that supports it (transport.Placer), large messages are sent from the program's
// memory and received into it without copies. The memory is registered with the link in parts. A
// receive registers one part ahead of the bytes that have arrived; a send registers a part when it
// reaches it. So registration delays neither the message nor other traffic, and little memory is
// locked at a time. Memory that cannot be registered is copied.

// zcopy manages the registration of the program's memory with links, which lets them send and
// receive it without copies.
type zcopy struct {
	from       int                      // size in bytes from which messages are not copied; 0: all messages are copied
	warn       func(string)             // shows a warning to the user (Config.Warn); may be nil
	registered list.List[*registration] // messages with registered parts, until they are released
	warned     bool                     // The user has been warned that messages are copied.
}

// registration holds the parts of one message's memory that are registered with links.
type registration struct {
	pins   []pin                    // registered parts
	copied bool                     // The rest of the message is copied: no further parts are registered.
	owner  *zcopy                   // the zcopy whose list registered has this registration; nil: it is in no list
	node   list.Node[*registration] // element of zcopy.registered
}

// pin is a part of a message's memory that is registered with a link.
type pin struct {
	placer transport.Placer // link with which the part is registered
	from   int64            // offset of the part's first byte in the message, in bytes
	to     int64            // offset after the part's last byte in the message, in bytes
	region transport.Region // the link's handle for the part
}

// may reports whether a message of so many bytes may be sent or received without copies. allowed is
// the Zcopy of its Source or Sink.
func (z *zcopy) may(allowed bool, m *registration, bytes int) bool {
	return z.from > 0 && bytes >= z.from && allowed && !m.copied
}

// pin adds part p, which is registered with a link, to the registered parts of message m.
func (z *zcopy) pin(m *registration, p pin) {
	if m.owner == nil {
		m.owner = z
		z.registered.Push(&m.node)
	}
	m.pins = append(m.pins, p)
}

// release deregisters, from their links, all parts of a message that is complete or has failed.
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

// releaseUpTo deregisters, from their links, the parts of the message that end at offset or before.
func (m *registration) releaseUpTo(offset int64) {
	for len(m.pins) > 0 && m.pins[0].to <= offset {
		m.pins[0].region.Release()
		m.pins = append(m.pins[:0], m.pins[1:]...)
	}
}

// releaseLink deregisters the parts of all messages that are registered with the link placer, which
// is lost.
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

// fallbackToCopy has the rest of a message copied, because registration failed with the error why.
// The first failure is shown to the user.
func (z *zcopy) fallbackToCopy(m *registration, why error) {
	m.copied = true
	// Memory that does not exist cannot be registered either: the copy reports that.
	if errors.Is(why, transport.ErrClosed) || errors.Is(why, unix.EFAULT) || z.warned || z.warn == nil {
		return
	}
	z.warned = true
	z.warn(fmt.Sprintf("large messages are copied, because the program's memory cannot be registered: %v", why))
}

// pinned returns the registered part of a message that has the n bytes at offset, or nil if they
// cannot be registered. mem is all of the message. If the part is not registered with the link,
// pinned registers it.
func (z *zcopy) pinned(placer transport.Placer, m *registration, mem []byte, offset int64, n int) *pin {
	i := slices.IndexFunc(m.pins, func(p pin) bool { return p.placer == placer })
	if i >= 0 {
		if p := &m.pins[i]; p.from <= offset && offset+int64(n) <= p.to {
			return p
		}
	}
	from := offset - offset%part // the same whenever the buffer is sent, so the link may have it registered
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

// expect registers the next parts of a receive with a link, so that up to partsAhead are registered
// at a time. key is the receive's handle, mem its whole buffer, and from the end of the part that
// has been registered; expect returns the new end.
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
