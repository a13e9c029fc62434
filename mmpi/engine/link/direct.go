package link

import (
	"context"
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/leidenzipper/zipper/internal/transport"
	"github.com/leidenzipper/zipper/mmpi/engine/fault"
)

// A direct link leads to one process of another cluster without a forwarder. One of the two
// processes is on a zipper node, or a zipper node's kernel routes the link. A direct link is a rail
// that only frames of this pair take, and while it is up it carries all of them. When it is lost,
// the frames go through the forwarders, as frames of any lost rail take another rail, and the end
// that dialed reconnects. Both ends know from the start that they can have a direct link, so both
// are ready for frames that overtake each other.

// Opener opens the direct link (without a forwarder) to a process. A nil Opener means that the
// other process opens the link, and that the caller hands it to DirectUp.
type Opener func(ctx context.Context) (transport.Link, error)

// newDirect returns rails, without links, that lead directly to each rank in openers. An error
// means that one of the ranks is in this process's cluster.
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
			func(ctx context.Context, _ Attempt) (transport.Link, error) { return open(ctx) })
		s.tracker.Direct(&r.Rail, rank, open != nil)
		p.direct = r
		rails = append(rails, r)
	}
	return rails, nil
}

// DirectUp puts link l, which leads directly to a rank, into use, in place of the previous one. It
// returns false if the link is no longer wanted. The caller must not hold the lock.
func (s *Set) DirectUp(rank int, l transport.Link) bool { return s.accept(s.Peer(rank).direct, l) }

// StopRedial stops this end from reconnecting the direct link to a rank after a loss.
func (s *Set) StopRedial(rank int) { s.Peer(rank).direct.StopRedial() }

// stepDirect reads and writes direct links once, and returns how many bytes it moved. If there are
// more than fewDirect, one poll finds those with something to read.
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
		fd := int32(-1) // Poll ignores a negative descriptor.
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

// AwaitDirect waits until this process has a direct link to each process with which it can have
// one, or until ctx ends. It does not wait for a link that this end opens once an attempt has
// failed. It returns an error that names the lowest rank without a direct link, or nil. Links that
// come up later are still put into use. The caller must not hold the lock.
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

// missingDirect returns an error that names the lowest rank without a direct link, or nil if all
// have theirs. pending reports whether AwaitDirect must go on waiting: the job has not ended, and
// there is at least one missing link that no attempt of this end has failed to open.
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
	why := "it has not connected"
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
