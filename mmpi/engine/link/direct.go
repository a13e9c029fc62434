package link

import (
	"context"
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/leidenzipper/zipper/internal/transport"
	"github.com/leidenzipper/zipper/mmpi/engine/fault"
)

// A direct link leads to one process of another cluster without a forwarder. One of the two is on a
// zipper node, or a zipper node's kernel passes the link on. It is a rail that only this pair's
// frames take, and while it is up it takes all of them. When it is lost they go through the
// forwarder, as the frames of any lost rail go by another; the end that dialled opens it again.
// Both ends know from the start that they can have one, so both are ready for frames that overtake
// each other.

// Opener opens the link to a process that can be reached directly; nil: that process does so, and
// DirectUp is called.
type Opener func(ctx context.Context) (transport.Link, error)

// directState is what direct links have in common.
type directState struct {
	changed chan struct{} // tells when pairs have become linked, or could not
	set     []unix.PollFd // scratch
}

// addDirect makes the rails of pairs that can have a direct link, all of them down.
func (s *Set) addDirect(openers map[int]Opener) error {
	s.direct.changed = make(chan struct{}, 1)
	if len(openers) == 0 {
		return nil
	}
	s.slots++
	first, end := s.world.Mine()
	for rank := range s.size {
		open, ok := openers[rank]
		if !ok {
			continue
		}
		if rank >= first && rank < end {
			return fault.New(fault.Internal, "direct link to rank %d of the own cluster", rank)
		}
		p := s.Peer(rank)
		r := &rail{set: s, index: len(s.forwarders), peer: p}
		if open != nil {
			r.redial = func(ctx context.Context, _ bool) error {
				l, err := open(ctx)
				if err == nil && !s.DirectUp(rank, l) {
					l.Close()
				}
				return err
			}
		}
		p.direct = r
		s.rails = append(s.rails, r)
	}
	return nil
}

// DirectUp takes a link to another process into use, in place of the one before; false: the set
// does not want it any more. The caller does not have the lock.
func (s *Set) DirectUp(rank int, l transport.Link) bool {
	s.lock.Lock()
	defer s.lock.Unlock()
	r := s.peers.Get(rank).direct
	if !s.wants(r) {
		return false
	}
	if r.linked() { // the other end knew sooner
		s.failover.railDown(r, "opened again")
	}
	r.takeIntoUse(l)
	r.peer.resend(nil)
	r.peer.schedule()
	s.wake()
	s.direct.news(r, nil)
	return true
}

// stepDirect reads and writes direct links once. Which of many have something to read is asked with
// one system call.
func (s *Set) stepDirect() (n int) {
	direct := s.rails[len(s.forwarders):]
	if len(direct) <= fewDirect {
		for _, r := range direct {
			n += r.step()
		}
		return n
	}
	set := s.direct.set[:0]
	for _, r := range direct {
		fd := int32(-1) // is passed over
		if r.linked() {
			fd = int32(r.link.FD())
		}
		set = append(set, unix.PollFd{Fd: fd, Events: unix.POLLIN})
	}
	s.direct.set = set
	s.system.Poll(set, 0, true)
	for i, r := range direct {
		if set[i].Revents != 0 || r.pending() {
			n += r.step()
		}
	}
	return n
}

// AwaitDirect waits until all pairs that can have a direct link have it or have failed to make it
// once; those that do not are in the error. It never waits longer than ctx lasts. What is late is
// taken into use whenever it comes. The caller does not have the lock.
func (s *Set) AwaitDirect(ctx context.Context) error {
	for {
		missing, open := s.missingDirect()
		if !open {
			return missing
		}
		select {
		case <-ctx.Done():
			return missing
		case <-s.direct.changed:
		}
	}
}

// missingDirect says which pairs have no direct link; open: some may still get it.
func (s *Set) missingDirect() (err error, open bool) {
	s.lock.Lock()
	defer s.lock.Unlock()
	missing, first := 0, (*rail)(nil)
	for _, r := range s.rails[len(s.forwarders):] {
		if r.linked() {
			continue
		}
		missing++
		if first == nil || r.peer.Rank < first.peer.Rank {
			first = r
		}
		open = open || r.failed == nil && !s.ended
	}
	if first == nil {
		return nil, false
	}
	why := "it has not called"
	if first.failed != nil {
		why = first.failed.Error()
	}
	more := ""
	if missing > 1 {
		more = fmt.Sprintf(" (and with %d more)", missing-1)
	}
	return fmt.Errorf("no direct link with rank %d%s: %s; messages go through the forwarder meanwhile",
		first.peer.Rank, more, why), open
}
