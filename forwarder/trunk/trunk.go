// Package trunk decides how many connections there are to be between two forwarders of a job. It
// has no connections and no clock.
package trunk

import (
	"slices"

	"github.com/leidenzipper/zipper/internal/transport"
)

// Path is what is known of the way that a connection takes.
type Path = transport.Path

// Link is what is known of a connection at some moment.
type Link struct {
	Path
	Known   bool // Known says that Path was measured.
	Carried bool // Carried says that a command, such as ssh, carries the connection.
	Packet  int  // Packet is the length of full packets in bytes; 0: unknown.
}

// LinkOf returns what is known of a link now.
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

// Long reports whether the path is a long one.
func (l *Link) Long() bool { return l.Known && l.RoundTrip > Far }

// Size is how many connections a trunk is to have. The zero value is one. Not safe for concurrent
// use.
type Size struct {
	bulk  int // that carry large frames
	fixed bool
	seen  map[int]transport.Path // at the last look
}

// New is the size for a path; known: it has been measured. With fixed not 0 so many connections
// carry bulk, whatever the path.
func New(path transport.Path, known bool, fixed int) Size {
	switch {
	case fixed > 0:
		return Size{bulk: min(fixed, Most), fixed: true}
	case known && path.RoundTrip > Far:
		return Size{bulk: First}
	}
	return Size{bulk: 1, fixed: true}
}

// Connections is how many there are to be: one carries all, or it carries what is small and
// the others are for bulk.
func (s *Size) Connections() int {
	if s.bulk <= 1 {
		return 1
	}
	return s.bulk + 1
}

// Grows reports whether the size may change: Grow is to be called after each Measure.
func (s *Size) Grows() bool { return !s.fixed && s.bulk < Most }

// Grow looks at the connections that carry bulk, by their numbers, and reports whether there are to
// be more: twice as many, if most of those that were busy had to wait for room in the buffers at
// their ends. That the path is full, or that it loses packets, is not changed by more of them.
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

// Losses notes which connections lose packets. The zero value knows of none. Not safe for
// concurrent use.
type Losses struct {
	seen  map[int]transport.Path // at the last look
	again map[int]bool           // they did then
}

// Look takes what is known of connections now, by their numbers, after each Measure. It gives those
// that have lost packets twice in a row.
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
