package link

import (
	"slices"

	"github.com/leidenzipper/zipper/internal/wire"
	"github.com/leidenzipper/zipper/mmpi/engine/fault"
)

// Met: every process has come to the end of the job. Nothing that is lost from now on is a failure
// of it: instead this process waits for others no more (Gone). With the lock, as those that follow.
func Met(s *Set) { s.failover.met = true }

// Gone reports whether nothing more comes, after Met: the job has been ended, or others are out of
// reach for as long as would have ended it.
func Gone(s *Set) bool { return s.failover.gone }

// Left reports whether a process has taken its leave, as far as this one has been told. None does
// before all have met.
func Left(s *Set, rank int) bool {
	p := s.peers.Get(rank)
	return p != nil && p.left
}

// Finish has links that come from now on refused, and losses no longer matter.
func (s *Set) Finish() { s.failover.finishing = true }

// SayBye ends the links cleanly. An acknowledgement that may go down with a rail is repeated on the
// others: nobody is here to do it later.
func (s *Set) SayBye() {
	s.Finish()
	for _, r := range s.rails {
		if r.state == up {
			s.failover.leave(r)
		}
	}
	s.failover.leaveLater()
}

// leaveLater has good-bye said on rails without a link as soon as they have one, if there is
// somebody to whom no other one leads: the last acknowledgements go there.
func (v *failover) leaveLater() {
	for _, r := range v.set.forwarders {
		if r.leaves || r.redial == nil || r.state > dialling || !needed(r) {
			continue
		}
		r.leaves = true // it is not to wait for others there
		switch {
		case r.state == down:
			v.reconnect(r)
		case r.retry != nil:
			r.retry()
		}
	}
}

// needed reports whether the rail leads to a process that no other one reaches.
func needed(r *rail) bool {
	s := r.set
	for rank := range s.size {
		if rank == s.world.Rank {
			continue
		}
		rails := s.railsTo(rank)
		if slices.Contains(rails, r) && !slices.ContainsFunc(rails, func(o *rail) bool { return o.reaches(rank) }) {
			return true
		}
	}
	return false
}

// leave says good-bye on a rail.
func (v *failover) leave(r *rail) {
	s := r.set
	for _, p := range s.peers.All() {
		if p != nil && p.repeats(r) && r.reaches(p.Rank) {
			f := p.NewFrame(wire.TypeAck, 0, 0, 0)
			f.sum(s)
			f.rail = r
			r.push(f)
		}
	}
	r.push(s.newControl(wire.TypeBye, nil))
	r.to(byeSent)
	r.leaves, r.pinged = false, s.Now()
}

// ByeAcked reports whether all other ends have answered.
func (s *Set) ByeAcked() bool {
	for _, r := range s.rails {
		if r.open() || r.leaves {
			return false
		}
	}
	return true
}

// SayAbort puts an Abort on all rails: the rank is the cause.
func (s *Set) SayAbort(status, rank int, reason string) {
	a := wire.Abort{Code: int32(status), Rank: uint32(rank), Reason: reason, By: wire.Nobody}
	if s.seal != nil {
		s.seal.Sign(&a)
	}
	for _, r := range s.rails {
		if r.linked() {
			r.push(s.newControl(wire.TypeAbort, &a))
		}
	}
}

// Drain writes what the links take; a link that fails is of no use any more. blocked: they take
// nothing now.
func (s *Set) Drain() (blocked bool) {
	blocked = true
	for _, r := range s.rails {
		if !r.pending() {
			continue
		}
		if _, err := r.write(); err != nil {
			r.fail()
		}
		blocked = blocked && r.blocked
	}
	return blocked
}

// Close ends all links. What was under way in them is forgotten.
func (s *Set) Close() {
	s.ended = true
	s.cancel()
	for _, r := range s.rails {
		r.to(closed)
		r.close()
		r.drop()
		r.seg = segment{}
		r.in = input{buf: r.in.buf}
	}
}

// Check compares the counters that are kept by hand with what they count. For tests.
func (s *Set) Check() error {
	unacked := 0
	for _, p := range s.peers.All() {
		if p == nil {
			continue
		}
		unacked += p.retained.Len()
		kept := 0
		for n := p.retained.First(); n != nil; n = n.Next() {
			kept += len(n.Of.Buf)
		}
		if kept != p.kept {
			return fault.New(fault.Internal, "%d bytes are kept for rank %d, %d are counted", kept, p.Rank, p.kept)
		}
		left := int64(0)
		for n := p.bulk.First(); n != nil; n = n.Next() {
			left += int64(len(n.Of.Buf)) - n.Of.started
		}
		if left != p.backlog && !s.ended {
			return fault.New(fault.Internal, "%d bytes are left for rank %d, %d are counted", left, p.Rank, p.backlog)
		}
	}
	if unacked != s.unacked {
		return fault.New(fault.Internal, "%d frames are unacknowledged, %d are counted", unacked, s.unacked)
	}
	for _, r := range s.rails {
		unsent := 0
		for n := r.queue.First(); n != nil; n = n.Next() {
			if !n.Of.background {
				unsent++
			}
		}
		if unsent != r.unsent {
			return fault.New(fault.Internal, "rail %s: %d frames wait, %d are counted", r.name(), unsent, r.unsent)
		}
	}
	return nil
}
