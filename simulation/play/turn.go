package play

import (
	"cmp"
	"slices"
	"time"
)

// step is what a rank of a recorded job does next: it computes, then sends a message or waits until
// one is there.
type step struct {
	place   int
	message int
	takes   bool // else it sends
	work    time.Duration
}

// share tells processes their turns.
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

// play has the process do one after the other what was recorded of it.
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

// await returns when something is so that goOn tells of.
func (p *proc) await(so *bool) { p.r.k.Await(func() bool { return *so }) }

// goOn has the process look again, if it waits.
func (p *proc) goOn() {
	if p.player != nil {
		p.player.Wake()
	}
}
