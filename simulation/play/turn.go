package play

import (
	"cmp"
	"slices"
	"time"
)

// step is one step of a recorded rank: it computes, and then sends a message or waits for one.
type step struct {
	place   int           // position among all steps of the rank
	message int           // index in run.messages
	takes   bool          // whether it receives the message; otherwise it sends it
	work    time.Duration // computing time before the send or receive
}

// share gives each process its recorded steps, in the order in which the rank took them.
func (r *run) share() {
	for i := range r.messages {
		if m := &r.messages[i]; m.played {
			m.from.turns = append(m.from.turns, step{m.Turn[0], i, false, seconds(m.Work)})
			m.to.turns = append(m.to.turns, step{m.Turn[1], i, true, seconds(m.Taken)})
		}
	}
	for _, p := range r.procs {
		slices.SortFunc(p.turns, func(a, b step) int { return cmp.Compare(a.place, b.place) })
	}
}

// play starts a thread of process p that takes its recorded steps in order. It does nothing if none
// were recorded.
func (p *proc) play() {
	if len(p.turns) == 0 {
		return
	}
	r := p.r
	p.player = p.p.Go(func() {
		for _, t := range p.turns {
			m := &r.messages[t.message]
			if !t.takes {
				for _, k := range m.Sent {
					p.await(&r.messages[k].left)
				}
			}
			r.moved = max(r.moved, r.k.Now()+t.work)
			r.k.Compute(t.work)
			if t.takes {
				p.await(&m.there)
			} else {
				p.send(t.message)
			}
		}
	})
}

// await has the running thread, which takes the recorded steps, sleep until *so is true. It checks
// that when resume wakes it.
func (p *proc) await(so *bool) { p.r.k.Await(func() bool { return *so }) }

// resume wakes the thread of process p that takes recorded steps, if there is one, to look again at
// what it awaits.
func (p *proc) resume() {
	if p.player != nil {
		p.player.Wake()
	}
}
