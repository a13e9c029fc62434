package coll

import (
	"slices"

	"github.com/leidenzipper/zipper/mmpi/engine/fault"
)

// In a job that goes on when a cluster is lost, the collectives of a communicator that has a lost
// member, or is revoked, end with an error. Nothing of them touches the program's memory
// afterwards: messages that were not matched are taken back, the others are awaited, and native
// stages are left behind on memory of the engine.

// under has what a collective has started and may have to end early. It is empty in other jobs.
type under struct {
	messages []*message
	natives  []*nativeStage
	failing  bool // whether the collective ends early
}

// keepMessage adds a message, and forgets some that are over.
func (u *under) keepMessage(m *message) {
	if len(u.messages) == cap(u.messages) {
		u.messages = slices.DeleteFunc(u.messages, func(m *message) bool { return m.cell.Done() })
	}
	u.messages = append(u.messages, m)
}

// keepStage adds a native stage, and forgets some that are over.
func (u *under) keepStage(r *nativeStage) {
	if len(u.natives) == cap(u.natives) {
		u.natives = slices.DeleteFunc(u.natives, func(r *nativeStage) bool { return r.over })
	}
	u.natives = append(u.natives, r)
}

// fail ends the collective early with an error. It reports whether nothing of it is under way any
// more, apart from native stages.
func (x *collective) fail(code fault.Code) bool {
	if !x.failing {
		x.failing = true
		for _, m := range x.messages {
			if !m.cell.Done() {
				x.set.ep.Interrupt(&m.cell, code)
			}
		}
		for _, r := range x.natives {
			if !r.over {
				x.set.leave(r)
			}
		}
		x.set.ep.Links().FlushPending()
	}
	return !slices.ContainsFunc(x.messages, func(m *message) bool { return !m.cell.Done() })
}

// leave leaves a native stage behind, which is tested until it ends.
func (s *Set) leave(r *nativeStage) {
	s.natives--
	s.behind = append(s.behind, left{token: r.token, memory: r.memory})
	r.over = true
}

// left is a native stage that was left behind.
type left struct {
	token  uint64
	memory *memory
}

// testLeft tests the native stages that were left behind.
func (s *Set) testLeft() {
	s.behind = slices.DeleteFunc(s.behind, func(l left) bool {
		over, err := s.native.CollTest(l.token)
		if over || err != nil {
			l.memory.end(true)
		}
		return over || err != nil
	})
}
