// Package trunk determines the number of connections between two forwarders of a job. It has no
// connections and no clock.
package trunk

import (
	"slices"

	"github.com/leidenzipper/zipper/internal/transport"
)

// Path has the measurements of a connection's path through the network, such as its round-trip
// time.
type Path = transport.Path

// Link is a snapshot of a connection's properties.
type Link struct {
	Path
	Known   bool // Known says that Path was measured.
	Carried bool // Carried says that a command, such as ssh, carries the connection.
	Packet  int  // Packet is the length of full packets in bytes; 0: unknown.
}

// LinkOf returns a snapshot of the properties of link l.
func LinkOf(l transport.Link) (k Link) {
	if d, ok := l.(transport.Distant); ok {
		k.Path, k.Known = d.Path()
	}
	if p, ok := l.(transport.Packeted); ok {
		k.Packet = p.Packet()
	}
	_, k.Carried = l.(transport.Carried)
	return k
}

// Long reports whether the path is known to have a round trip of more than Far.
func (l *Link) Long() bool { return l.Known && l.RoundTrip > Far }

// Size is the number of connections of a trunk. The zero value stands for one. It is not safe for
// concurrent use.
type Size struct {
	bulk  int                    // the number of connections that carry bulk frames
	fixed bool                   // whether the size cannot grow
	seen  map[int]transport.Path // the measurements at the last Grow, by number of the connection
}

// New returns the size for a path; known says that the path has been measured. If fixed is not 0,
// it is the number of bulk connections, for any path.
func New(path transport.Path, known bool, fixed int) Size {
	switch {
	case fixed > 0:
		return Size{bulk: min(fixed, Most), fixed: true}
	case known && path.RoundTrip > Far:
		return Size{bulk: First}
	}
	return Size{bulk: 1, fixed: true}
}

// Connections returns the number of connections: either one carries all, or one carries small
// frames and the others carry bulk.
func (s *Size) Connections() int {
	if s.bulk <= 1 {
		return 1
	}
	return s.bulk + 1
}

// Grows reports whether the number of connections may still rise. If so, Grow must be called after
// each Measure, a period of time.
func (s *Size) Grows() bool { return !s.fixed && s.bulk < Most }

// Grow takes the paths of the bulk connections by their numbers, and reports whether the trunk
// needs more connections. It doubles their number if all of them were busy, and most had to wait
// for room in the send buffers. More connections would not help if the path is full or loses
// packets.
func (s *Size) Grow(now map[int]transport.Path) (more bool) {
	short, busy := 0, 0
	for n, p := range now {
		was, before := s.seen[n]
		if !before || p.Busy-was.Busy < Measure/busyShare {
			continue
		}
		busy++
		if p.Short-was.Short >= (p.Busy-was.Busy)/shortShare {
			short++
		}
	}
	s.seen = now
	if !s.Grows() || busy < s.bulk || 2*short <= busy {
		return false
	}
	s.bulk = min(2*s.bulk, Most)
	return true
}

// Losses records which connections lose packets. The zero value is empty. It is not safe for
// concurrent use.
type Losses struct {
	seen  map[int]transport.Path // the measurements at the last Look, by number of the connection
	again map[int]bool           // the numbers of the connections that had lost packets at the last Look
}

// Look takes the paths of connections by their numbers, after each Measure. It returns the
// connections that have lost packets twice in a row.
func (l *Losses) Look(now map[int]transport.Path) (lossy []int) {
	again := map[int]bool{}
	for n, p := range now {
		was := l.seen[n]
		if p.Sent < was.Sent || p.Repeated <= was.Repeated || (p.Repeated-was.Repeated)*lossShare < p.Sent-was.Sent {
			continue // a new connection has the number, or little was lost
		}
		again[n] = true
		if l.again[n] {
			lossy = append(lossy, n)
		}
	}
	l.seen, l.again = now, again
	slices.Sort(lossy)
	return lossy
}
