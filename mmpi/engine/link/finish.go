package link

import (
	"github.com/leidenzipper/zipper/mmpi/engine/fault"
	"github.com/leidenzipper/zipper/mmpi/engine/link/failover"
)

// Finished notes that all processes have reached the end of the job. From now on a loss is no
// error: it only ends the wait for others (FinishFailed). The caller has the lock, as in all
// methods of this file.
func (s *Set) Finished() { s.tracker.Finished() }

// FinishFailed reports whether, since Finished, the job has been ended, or ranks have been
// unreachable for as long as would have ended it: nothing more arrives.
func (s *Set) FinishFailed() bool { return s.tracker.FinishFailed() }

// Departed reports whether a process is known to have left the job. None does before all have
// finished.
func (s *Set) Departed(rank int) bool {
	p := s.peers.Get(rank)
	return p != nil && p.departed
}

// IgnoreLosses has lost links not opened again, and new ones refused.
func (s *Set) IgnoreLosses() { s.tracker.Ignore() }

// SendBye ends the links in order.
func (s *Set) SendBye() {
	s.IgnoreLosses()
	for _, r := range s.rails {
		if r.State() == failover.Up {
			s.leave(r)
		}
	}
	s.leaveLater()
}

// ByeAcked reports whether all other ends have acknowledged the Bye.
func (s *Set) ByeAcked() bool {
	for _, r := range s.rails {
		if r.Open() || r.OwesBye() {
			return false
		}
	}
	return true
}

// Drain writes what the links take; a link that fails is discarded. blocked: they take nothing now.
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

// Close closes all links, and forgets what was in progress on them.
func (s *Set) Close() {
	s.ended = true
	s.cancel()
	for _, r := range s.rails {
		s.tracker.Close(&r.Rail)
		r.detachLink()
		r.seg.reset()
	}
}

// Check compares the counters that are kept by hand with what they count. It is for tests.
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
			return fault.New(fault.Internal, "%d bytes are kept for rank %d, %d are counted", kept, p.Rank, p.retained.bytes)
		}
		left := int64(0)
		for n := p.out.sources.First(); n != nil; n = n.Next() {
			left += int64(len(n.Of.Buf)) - n.Of.started
		}
		if left != p.out.backlog && !s.ended {
			return fault.New(fault.Internal, "%d bytes are left for rank %d, %d are counted", left, p.Rank, p.out.backlog)
		}
	}
	if unacked != s.unacked {
		return fault.New(fault.Internal, "%d frames are unacknowledged, %d are counted", unacked, s.unacked)
	}
	for _, r := range s.rails {
		unsent := 0
		for n := r.queue.frames.First(); n != nil; n = n.Next() {
			if !n.Of.background {
				unsent++
			}
		}
		if unsent != r.queue.unsent {
			return fault.New(fault.Internal, "rail %s: %d frames wait, %d are counted", r.Name(), unsent, r.queue.unsent)
		}
	}
	return nil
}
