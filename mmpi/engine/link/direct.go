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
// frames take, and while it is up it takes all of them. When it is lost they take the forwarder, as
// the frames of any lost rail take another, and the end that dialed opens it again. Both ends know
// from the start that they can have one, so both are ready for frames that overtake each other.

// Opener opens the link to a process that can be reached directly; nil: that process does so, and
// DirectUp is called.
type Opener func(ctx context.Context) (transport.Link, error)

// newDirect makes the rails of pairs that can have a direct link, all of them down.
func (s *Set) newDirect(openers map[int]Opener) (rails []*rail, err error) {
	first, end := s.world.Mine()
	for rank := range s.size {
		open, ok := openers[rank]
		if !ok {
			continue
		}
		if rank >= first && rank < end {
			return nil, fault.New(fault.Internal, "direct link to rank %d of the own cluster", rank)
		}
		p := s.Peer(rank)
		r := newRail(&s.core, len(s.forwarders), p,
			func(ctx context.Context, _ bool) (transport.Link, error) { return open(ctx) })
		s.tracker.Direct(&r.Rail, rank, open != nil)
		p.direct = r
		rails = append(rails, r)
	}
	return rails, nil
}

// DirectUp puts a link to another process into use, in place of the one before. It returns false if
// the link is no longer wanted. The caller does not have the lock.
func (s *Set) DirectUp(rank int, l transport.Link) bool { return s.accept(s.Peer(rank).direct, l) }

// StopRedial has this end not open a direct link again when it is lost.
func (s *Set) StopRedial(rank int) { s.Peer(rank).direct.StopRedial() }

// stepDirect reads and writes direct links once. If there are many, one system call asks which have
// something to read.
func (s *Set) stepDirect() (n int) {
	direct := s.rails[len(s.forwarders):]
	if len(direct) <= fewDirect {
		for _, r := range direct {
			n += r.step()
		}
		return n
	}
	set := s.polled[:0]
	for _, r := range direct {
		fd := int32(-1) // is passed over
		if r.Linked() {
			fd = int32(r.link.FD())
		}
		set = append(set, unix.PollFd{Fd: fd, Events: unix.POLLIN})
	}
	s.polled = set
	s.system.Poll(set, 0, true)
	for i, r := range direct {
		if set[i].Revents != 0 || r.pending() {
			n += r.step()
		}
	}
	return n
}

// AwaitDirect waits until all pairs that can have a direct link have it, or have failed to open it
// once. It returns an error that names those without. It never waits longer than ctx lasts; links
// that come later are put into use all the same. The caller does not have the lock.
func (s *Set) AwaitDirect(ctx context.Context) error {
	for {
		missing, pending := s.missingDirect()
		if !pending {
			return missing
		}
		select {
		case <-ctx.Done():
			return missing
		case <-s.changed:
		}
	}
}

// missingDirect returns an error that names pairs without a direct link; pending: some may still
// get it.
func (s *Set) missingDirect() (err error, pending bool) {
	s.lock.Lock()
	defer s.lock.Unlock()
	missing, first := 0, (*rail)(nil)
	for _, r := range s.rails[len(s.forwarders):] {
		if r.Linked() {
			continue
		}
		missing++
		if first == nil || r.peer.Rank < first.peer.Rank {
			first = r
		}
		pending = pending || r.DialError() == nil && !s.ended
	}
	if first == nil {
		return nil, false
	}
	why := "it has not called"
	if err := first.DialError(); err != nil {
		why = err.Error()
	}
	more := ""
	if missing > 1 {
		more = fmt.Sprintf(" (and with %d more)", missing-1)
	}
	return fmt.Errorf("no direct link with rank %d%s: %s; messages go through the forwarder meanwhile",
		first.peer.Rank, more, why), pending
}
