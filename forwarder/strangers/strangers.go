// Package strangers counts the resources of a forwarder that its clients use, in all and from one
// address, and bounds them:
//
//  1. links of an address: beyond LinksFrom further ones are refused (Connect);
//  2. links that have not joined: beyond UnjoinedFrom the oldest of that address is closed, and
//     beyond Unjoined the oldest of the address that has most; among several such addresses it is the
//     oldest link of all (Connect). A link that joins is no longer counted (Settle);
//  3. jobs that gather: beyond GatheringFrom of an address, or Gathering, no other job may be
//     opened (MayOpen).
package strangers

import (
	"container/list"
	"fmt"
	"net"
	"net/netip"
	"strings"
)

// Limits are the maximum numbers of links and jobs at any time. "From" in a name means from one
// address.
type Limits struct {
	Unjoined, UnjoinedFrom   int // the maximum numbers of links that have not joined
	LinksFrom                int // the maximum number of links of any kind
	Gathering, GatheringFrom int // the maximum numbers of jobs that wait for ranks
}

// Strangers has the counts of links and gathering jobs, by the address from which they come. It is
// not safe for concurrent use.
type Strangers struct {
	limits    Limits
	origins   map[string]*origin
	unjoined  int
	gathering int
	arrivals  uint64 // the number of links that Connect has counted so far
}

// origin is an address from which links come.
type origin struct {
	name      string
	links     int
	unjoined  list.List // the links that have not joined, of type *Stranger, oldest first
	gathering int       // the gathering jobs that its links have opened
}

// Stranger is one link, with the address that it comes from.
type Stranger struct {
	Who    any    // the caller's name for the link
	number uint64 // the number of the link in the order of arrival
	origin *origin
	place  *list.Element // the link's element of origin.unjoined, or nil if it has joined
}

// oldest returns the number of the link from this address that has waited longest. At least one
// link must be waiting.
func (o *origin) oldest() uint64 { return o.unjoined.Front().Value.(*Stranger).number }

// New returns a Strangers with limits l, which has counted no links.
func New(l Limits) *Strangers { return &Strangers{limits: l, origins: map[string]*origin{}} }

// SetLimits changes the limits. Links and jobs that exceed the new ones stay.
func (s *Strangers) SetLimits(l Limits) { s.limits = l }

// originOf returns the address that a link comes from: an IPv4 address, the first half of an IPv6
// address, because one host may have all addresses of a /64, or otherwise the text of the
// transport.
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

// Connect counts a new link, and returns it as g. It returns an error if the link must be refused.
// If oldest is not nil, the caller must close that link, which Settle has handled already. remote
// is the text of transport.Link. The argument who is kept as Stranger.Who.
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

// Address returns the address that the link comes from, as the limits count it (originOf).
func (g *Stranger) Address() string { return g.origin.name }

// Settle removes a link from those that have not joined: it belongs to a job, or never will. It may
// be called again.
func (s *Strangers) Settle(g *Stranger) {
	if g != nil && g.place != nil {
		g.origin.unjoined.Remove(g.place)
		g.place = nil
		s.unjoined--
	}
}

// Leave uncounts a link that has ended. It does nothing if g is nil, because such a link was never
// counted.
func (s *Strangers) Leave(g *Stranger) {
	if g != nil {
		s.Settle(g)
		g.origin.links--
		s.drop(g.origin)
	}
}

// MayOpen returns the reason why the link g may not open another job, or nil if it may.
func (s *Strangers) MayOpen(g *Stranger) error {
	switch o := g.origin; {
	case o.gathering >= s.limits.GatheringFrom:
		return fmt.Errorf("%d jobs from %s gather already: wait until one of them runs", o.gathering, o.name)
	case s.gathering >= s.limits.Gathering:
		return fmt.Errorf("%d jobs gather at this forwarder already", s.gathering)
	}
	return nil
}

// Opened counts a gathering job that the link g has opened.
func (s *Strangers) Opened(g *Stranger) {
	g.origin.gathering++
	s.gathering++
}

// Over uncounts a job that the link g had opened, because the job gathers no more. The link may
// have ended.
func (s *Strangers) Over(g *Stranger) {
	g.origin.gathering--
	s.gathering--
	s.drop(g.origin)
}

// drop forgets an address if it has neither links nor gathering jobs.
func (s *Strangers) drop(o *origin) {
	if o.links == 0 && o.gathering == 0 {
		delete(s.origins, o.name)
	}
}
