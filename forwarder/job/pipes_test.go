package job

import (
	"slices"

	"github.com/leidenzipper/zipper/internal/wire"
)

// pipe is a connection between two forwarders, the dialling one (side 0) and the other one (side
// 1), whose end may not exist yet. Queues are not changed in place, so worlds share them.
type pipe struct {
	at       [2]int // at has the forwarders' indexes.
	number   int
	there    bool     // there says that side 1 exists.
	queue    [2][]int // queue has the frames that were sent to each side, by their numbers in the model.
	closed   [2]bool  // closed says that the side is closed, and its forwarder knows.
	ending   [2]bool  // ending says that the side is to be closed.
	cut      bool
	asked    bool            // asked says that side 1 has been asked to accept the connection.
	rejected wire.RefuseCode // rejected is the code with which side 1 has refused the connection; 0: it has not.
	answered bool
}

// exists reports whether a side exists.
func (p *pipe) exists(side int) bool { return side == 0 || p.there }

// gone reports whether the connection has no use any more: both sides are closed, or the dialling
// side is and the other one will not exist.
func (p *pipe) gone() bool {
	return p.closed[0] && (p.closed[1] || !p.there && (p.asked || p.ending[0] || p.cut))
}

// forget sets what no later event depends on to one value.
func (p *pipe) forget() {
	if p.asked {
		p.number = 0
	}
	if p.closed[0] { // nothing is asked or answered any more
		p.asked, p.answered, p.rejected = true, true, 0
	}
	if p.answered {
		p.rejected = 0
	}
	for side := range 2 { // nothing is left to cut
		p.cut = p.cut || p.closed[1-side] && len(p.queue[side]) == 0
	}
	for side := range 2 { // a side that is cut or closed is as one that is to be closed
		p.ending[side] = p.ending[side] && !p.cut && !p.closed[side]
	}
}

// choices appends the choices of the pipe with index n to list.
func (p *pipe) choices(n int, list []choice) []choice {
	add := func(kind choiceKind, b int) { list = append(list, choice{kind: kind, a: n, b: b}) }
	switch {
	case !p.asked && !p.ending[0] && !p.cut:
		add(asks, 0)
	case p.asked && !p.answered && !p.closed[0]:
		add(answers, 0)
	}
	for side := range 2 {
		if !p.exists(side) || p.closed[side] {
			continue
		}
		if len(p.queue[side]) > 0 && (side == 1 || p.answered) {
			add(delivers, side)
		}
		if p.ending[side] || p.cut || (p.closed[1-side] || p.ending[1-side]) && len(p.queue[side]) == 0 {
			add(ends, side)
		}
	}
	if !p.cut && p.there {
		add(cuts, 0)
	}
	return list
}

// apply applies an effect of an operation on forwarder f.
func (p *pipe) apply(f int, e effect) {
	side := slices.Index(p.at[:], f)
	switch e.kind {
	case effectSent:
		if other := 1 - side; !p.cut && !p.closed[other] && !p.ending[other] {
			p.queue[other] = append(slices.Clip(p.queue[other]), e.frame)
		}
	case effectClose:
		p.ending[side], p.queue[side] = true, nil
	case effectAccepted:
		p.there = true
	case effectRejected:
		p.rejected = e.code
	}
}

// restarted closes the side of a forwarder that was started again.
func (p *pipe) restarted(f int) {
	if f == p.at[0] {
		p.closed[0], p.cut = true, true
		p.closed[1] = p.closed[1] || !p.there
	}
	if f == p.at[1] {
		p.closed[1], p.cut = true, true
	}
	if f == p.at[0] || f == p.at[1] {
		p.queue = [2][]int{}
	}
}

// closePipes closes the connections to other forwarders of the job before the present one.
func (w *world) closePipes(f int) {
	for n := range w.pipes {
		p := &w.pipes[n]
		for side := range 2 {
			if p.at[side] == f && p.exists(side) {
				p.ending[side], p.queue[side] = true, nil
			}
		}
	}
}

// removePipes removes the pipes that have no use any more.
func (w *world) removePipes() {
	for n := len(w.pipes) - 1; n >= 0; n-- {
		if p := &w.pipes[n]; !p.gone() {
			p.forget()
			continue
		}
		w.pipes = slices.Delete(w.pipes, n, n+1)
		for f := range w.zips {
			if slices.ContainsFunc(w.zips[f].ends, func(x seen) bool { return x.name > ofPipe(n) }) {
				w.do(f, operation{kind: opRename, name: ofPipe(n)})
			}
		}
	}
}

// crosses performs a choice between forwarders.
func (w *world) crosses(c choice) {
	if c.kind == dials {
		d := w.zips[c.a].dials[0]
		w.pipes = append(w.pipes, pipe{at: [2]int{c.a, d.Zipper}, number: d.Number})
		w.do(c.a, operation{kind: opDial, name: ofPipe(len(w.pipes) - 1)})
		return
	}
	p, name := &w.pipes[c.a], ofPipe(c.a)
	switch c.kind {
	case asks:
		p.asked = true
		w.do(p.at[1], operation{kind: opAsk, name: name, a: p.at[0], b: p.number})
	case answers:
		p.answered = true
		w.do(p.at[0], operation{kind: opAnswer, name: name, a: p.at[1], b: int(p.rejected)})
	case delivers:
		frame := p.queue[c.b][0]
		p.queue[c.b] = p.queue[c.b][1:]
		w.do(p.at[c.b], operation{kind: opDeliver, name: name, a: frame, b: p.at[1-c.b]})
	case ends:
		p.closed[c.b], p.queue[c.b] = true, nil
		w.do(p.at[c.b], operation{kind: opLose, name: name})
	case cuts:
		p.cut, p.queue = true, [2][]int{}
	}
}
