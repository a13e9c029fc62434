// Package strangers counts what those who connect to a forwarder have of it, in all and from one
// address, and says when it is too much:
//
//  1. links of an address: beyond LinksFrom there are no more (Connect);
//  2. links that have not joined: beyond UnjoinedFrom the oldest of that address is to go, beyond
//     Unjoined the oldest of the address that has most, and of several such addresses the one whose
//     oldest link came first (Connect). One that joins is not counted any more (Settle);
//  3. jobs that gather: beyond GatheringFrom of an address, or Gathering, no other one may be
//     opened (MayOpen).
package strangers

import (
	"container/list"
	"fmt"
	"net"
	"net/netip"
	"strings"
)

// Limits are what there may be of each at once. "From" is from one address.
type Limits struct {
	Unjoined, UnjoinedFrom   int // links that have not joined
	LinksFrom                int // links, whatever they do
	Gathering, GatheringFrom int // jobs that gather
}

// Strangers is the count. Not safe for concurrent use.
type Strangers struct {
	limits    Limits
	origins   map[string]*origin
	unjoined  int
	gathering int
	arrivals  uint64 // links that have ever been counted
}

// origin is an address that links come from.
type origin struct {
	name      string
	links     int
	unjoined  list.List // *Stranger, oldest first
	gathering int       // jobs that one of them has opened
}

// Stranger is a link in the count.
type Stranger struct {
	Who    any    // who it is to the caller
	number uint64 // its place in the order in which all links have come
	origin *origin
	place  *list.Element // in origin.unjoined; nil: it has joined
}

// oldest returns the number of the link from this address that has waited longest; there is one.
func (o *origin) oldest() uint64 { return o.unjoined.Front().Value.(*Stranger).number }

// New begins to count.
func New(l Limits) *Strangers { return &Strangers{limits: l, origins: map[string]*origin{}} }

// SetLimits changes how much there may be; what there is stays.
func (s *Strangers) SetLimits(l Limits) { s.limits = l }

// originOf is the address that a link comes from: an IPv4 address, the first half of an IPv6
// address, which one host may have all of; or else what the transport says.
func originOf(remote string) string {
	_, at, _ := strings.Cut(remote, " ")
	host, _, err := net.SplitHostPort(at)
	if err != nil {
		return remote
	}
	a, err := netip.ParseAddr(host)
	if err != nil {
		return remote
	}
	if a = a.Unmap(); a.Is6() {
		return netip.PrefixFrom(a.WithZone(""), 64).Masked().String()
	}
	return a.String()
}

// Connect counts a link that has come in. An error says why it may not be; oldest, if not nil, is
// to be closed for it, and is settled already. remote is transport.Link's.
func (s *Strangers) Connect(remote string, who any) (g, oldest *Stranger, err error) {
	name := originOf(remote)
	o := s.origins[name]
	if o == nil {
		o = &origin{name: name}
		s.origins[name] = o
	}
	if o.links >= s.limits.LinksFrom {
		return nil, nil, fmt.Errorf("there are %d links from %s already", o.links, o.name)
	}
	s.arrivals++
	g = &Stranger{Who: who, number: s.arrivals, origin: o}
	g.place = o.unjoined.PushBack(g)
	o.links++
	s.unjoined++
	switch {
	case o.unjoined.Len() > s.limits.UnjoinedFrom:
	case s.unjoined > s.limits.Unjoined:
		for _, other := range s.origins {
			if n, most := other.unjoined.Len(), o.unjoined.Len(); n > most || n == most && other.oldest() < o.oldest() {
				o = other
			}
		}
	default:
		return g, nil, nil
	}
	oldest = o.unjoined.Front().Value.(*Stranger)
	s.Settle(oldest)
	return g, oldest, nil
}

// Address is where a stranger is.
func (g *Stranger) Address() string { return g.origin.name }

// Settle notes that a link has a place in a job, or will have none. Harmless if it is known.
func (s *Strangers) Settle(g *Stranger) {
	if g != nil && g.place != nil {
		g.origin.unjoined.Remove(g.place)
		g.place = nil
		s.unjoined--
	}
}

// Leave takes a link that has ended out of the count; nil: it was never in.
func (s *Strangers) Leave(g *Stranger) {
	if g != nil {
		s.Settle(g)
		g.origin.links--
		s.drop(g.origin)
	}
}

// MayOpen says why a stranger may not open another job; nil: it may.
func (s *Strangers) MayOpen(g *Stranger) error {
	switch o := g.origin; {
	case o.gathering >= s.limits.GatheringFrom:
		return fmt.Errorf("%d jobs from %s gather already: wait until one of them runs", o.gathering, o.name)
	case s.gathering >= s.limits.Gathering:
		return fmt.Errorf("%d jobs gather at this forwarder already", s.gathering)
	}
	return nil
}

// Opened counts a job that a stranger has opened.
func (s *Strangers) Opened(g *Stranger) {
	g.origin.gathering++
	s.gathering++
}

// Over takes it out of the count: it runs, or never will. The stranger may have left.
func (s *Strangers) Over(g *Stranger) {
	g.origin.gathering--
	s.gathering--
	s.drop(g.origin)
}

// drop forgets an address that has nothing here.
func (s *Strangers) drop(o *origin) {
	if o.links == 0 && o.gathering == 0 {
		delete(s.origins, o.name)
	}
}
