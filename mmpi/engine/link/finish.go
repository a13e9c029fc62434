package link

import (
	"github.com/leidenzipper/zipper/mmpi/engine/fault"
	"github.com/leidenzipper/zipper/mmpi/engine/link/failover"
)

// Finished notes that all processes have reached the end of the job. From then on a loss does not
// fail the job: it only ends the wait for other processes (FinishFailed). The caller must hold the
// lock, as for all methods in this file.
func (s *Set) Finished() { s.tracker.Finished() }

// FinishFailed reports whether an error that would have ended the job has occurred since Finished:
// for example an Abort, ranks that were unreachable for too long, or the loss of the only link. If
// so, the caller must not wait for other processes.
func (s *Set) FinishFailed() bool { return s.tracker.FinishFailed() }

// Departed reports whether the process with a rank in the whole job is known to have left the job.
// No process leaves before all have finished.
func (s *Set) Departed(rank int) bool {
	p := s.peers.Get(rank)
	return p != nil && p.departed
}

// AnyDeparted reports whether some process is known to have left the job.
func (s *Set) AnyDeparted() bool {
	for _, p := range s.peers.All() {
		if p != nil && p.departed {
			return true
		}
	}
	return false
}

// IgnoreLosses makes the Set ignore further losses: links are not reconnected, and new links are
// refused, except those that must still carry a Bye.
func (s *Set) IgnoreLosses() { s.tracker.Ignore() }

// SendBye queues Bye on all rails that are up, which tells the forwarders and processes at their
// other ends that this process leaves in order. It opens the link of a rail that is down if Bye
// must be sent over it (leaveLater). Other losses of links are ignored from then on.
func (s *Set) SendBye() {
	s.IgnoreLosses()
	for _, r := range s.rails {
		if r.State() == failover.Up {
			s.leave(r)
		}
	}
	s.leaveLater()
}

// ByeAcked reports whether no acknowledgement of a Bye that SendBye has queued is outstanding, and
// no Bye must still be sent. A rail that is down does not count if Bye need not be sent over it.
func (s *Set) ByeAcked() bool {
	for _, r := range s.rails {
		if r.Open() || r.OwesBye() {
			return false
		}
	}
	return true
}

// Drain writes as many bytes as the links take, and drops the queue of a link that fails. It
// returns true if no link takes more bytes at the moment, or nothing waits.
func (s *Set) Drain() (blocked bool) {
	blocked = true
	for _, r := range s.rails {
		if !r.pending() {
			continue
		}
		if _, err := r.write(); err != nil {
			r.Discard()
			r.drop()
		}
		blocked = blocked && r.blocked
	}
	return blocked
}

// Close closes all links, and discards everything that was queued or in progress on them.
func (s *Set) Close() {
	s.ended = true
	s.cancel()
	for _, r := range s.rails {
		s.tracker.Close(&r.Rail)
		r.detachLink()
		r.seg.reset()
	}
	s.ready.Close()
}

// Check recounts the frames and bytes for which running counters are kept, and returns an error if
// a counter differs. It is for tests.
func (s *Set) Check() error {
	unacked := 0
	for _, p := range s.peers.All() {
		if p == nil {
			continue
		}
		unacked += p.retained.frames.Len()
		kept := 0
		for n := p.retained.frames.First(); n != nil; n = n.Next() {
			kept += len(n.Of.Buf)
		}
		if kept != p.retained.bytes {
			return fault.New(fault.Internal, "%d bytes are kept for rank %d, but the counter is %d", kept, p.Rank, p.retained.bytes)
		}
		left := int64(0)
		for n := p.out.sources.First(); n != nil; n = n.Next() {
			left += int64(len(n.Of.Buf)) - n.Of.started
		}
		if left != p.out.backlog && !s.ended {
			return fault.New(fault.Internal, "%d bytes are left for rank %d, but the counter is %d", left, p.Rank, p.out.backlog)
		}
	}
	if unacked != s.unacked {
		return fault.New(fault.Internal, "%d frames are unacknowledged, but the counter is %d", unacked, s.unacked)
	}
	for _, r := range s.rails {
		if err := s.Losses.checkRail(r); err != nil {
			return err
		}
		unsent := 0
		for n := r.queue.frames.First(); n != nil; n = n.Next() {
			if !n.Of.background {
				unsent++
			}
		}
		if unsent != r.queue.unsent {
			return fault.New(fault.Internal, "rail %s: %d frames wait, but the counter is %d", r.Name(), unsent, r.queue.unsent)
		}
	}
	return nil
}
