package job

import (
	"errors"

	"github.com/leidenzipper/zipper/forwarder/action"
	"github.com/leidenzipper/zipper/forwarder/bridge"
	"github.com/leidenzipper/zipper/internal/wire"
)

// pipe is a connection between two forwarders. Its other end may not exist yet.
type pipe struct {
	from, to int // the indices of the forwarders; from has dialled
	ends     [2]action.Conn
	number   int
	queue    [2][][]byte // queue has the frames that were sent to each end.
	closed   [2]bool     // closed says that the end is closed, and its forwarder knows.
	ending   [2]bool     // ending says that the end is to be closed.
	cut      bool
	asked    bool // asked says that the other end has been asked to accept the connection.
	answer   *bridge.Refused
	answered bool
}

// choicesOf returns the choices of a connection between forwarders.
func (w *world) choicesOf(n int, p *pipe) (list []choice) {
	add := func(kind string, b int) { list = append(list, choice{kind: kind, a: n, b: b}) }
	switch {
	case !p.asked && !p.ending[0]:
		add("ask", 0)
	case p.asked && !p.answered && !p.closed[0]:
		add("answer", 0)
	}
	for side := range 2 {
		if len(p.queue[side]) > 0 && !p.closed[side] && p.ends[side] != 0 && (side == 1 || p.answered) {
			add("deliver", side)
		}
		if !p.closed[side] && p.ends[side] != 0 && (p.ending[side] || p.cut || (p.closed[1-side] || p.ending[1-side]) && len(p.queue[side]) == 0) {
			add("end", side)
		}
	}
	if !p.cut && p.ends[1] != 0 && !p.closed[0] && !p.closed[1] {
		add("cut", 0)
	}
	return list
}

// dials opens a connection to another forwarder, or fails to.
func (w *world) dials(c choice) {
	z := w.zips[c.a]
	d := z.dials[0]
	z.dials = z.dials[1:]
	if c.kind == "undialled" {
		if d.Gathers {
			z.handle(GiveUp{Code: wire.RefuseTimeout, Reason: "not reached"})
		} else {
			z.handle(Crossed{d.Zipper, bridge.NotDialled{Number: d.Number, Err: errors.New("no answer")}})
		}
		return
	}
	z.next++
	p := &pipe{from: c.a, to: d.Zipper, number: d.Number}
	p.ends[0] = z.next
	z.shell.ends[z.next] = &end{role: introducing, rank: -1, zipper: d.Zipper, in: true}
	w.pipes = append(w.pipes, p)
	z.handle(Crossed{d.Zipper, bridge.Dialled{Conn: z.next, Number: d.Number}})
}

// asks lets the other end accept a dialled connection, or refuse it.
func (w *world) asks(p *pipe) {
	p.asked = true
	var first *wire.Join // the Join that the dialler shows
	for _, r := range w.ranks {
		for _, l := range r.links {
			if l.zip == p.from && first == nil {
				first = w.join(r, l)
			}
		}
	}
	z := w.zips[p.to]
	begins := z.shell == nil || z.job.State() == Ended
	if begins && p.number > 0 {
		p.answer = &bridge.Refused{Code: wire.RefuseTaken, Reason: "not here"}
		return
	}
	if !begins && z.job.Reopens(first, p.number) {
		z.handle(GiveUp{Code: wire.RefuseShutdown, Reason: "opened again"})
		begins = true
	}
	own := *first
	own.Here = uint16(p.to)
	if begins {
		z = w.open(p.to, &own)
	}
	z.next++
	p.ends[1] = z.next
	z.shell.ends[z.next] = &end{rank: -1, zipper: -1}
	z.handle(Offered{Conn: z.next, Join: first, Here: p.to, Number: p.number})
	if z.shell.ends[p.ends[1]].role == leaving {
		p.answer = &bridge.Refused{Code: wire.RefuseTaken, Reason: "refused"}
	}
}

// answers reports the result to the dialler.
func (w *world) answers(p *pipe) {
	p.answered = true
	z := w.zips[p.from]
	if z.shell == nil || z.shell.ends[p.ends[0]] == nil {
		return
	}
	x := z.shell.ends[p.ends[0]]
	if x.role != introducing {
		return
	}
	if p.answer != nil {
		x.role = leaving
		e := *p.answer
		e.Conn = p.ends[0]
		z.handle(Crossed{p.to, e})
		p.ending[0], p.queue[0] = true, nil
		return
	}
	x.role = bridging
	z.handle(Crossed{p.to, bridge.Introduced{Conn: p.ends[0]}})
}

// delivers passes the next frame to an end.
func (w *world) delivers(p *pipe, side int) {
	b := p.queue[side][0]
	p.queue[side] = p.queue[side][1:]
	f, other := p.to, p.from
	if side == 0 {
		f, other = p.from, p.to
	}
	z := w.zips[f]
	if z.shell == nil || z.shell.ends[p.ends[side]] == nil {
		return
	}
	h, body, c := wire.ParsedHeader(b), b[wire.HeaderLen:], p.ends[side]
	switch z.shell.ends[c].role {
	case bridging:
		if h.Type == wire.TypeJoin {
			z.booked += int64(len(body))
		}
		z.handle(ForwarderFrame{Conn: c, Zipper: other, Type: h.Type, Body: body, Room: h.Type == wire.TypeJoin})
	case running:
		switch h.Type {
		case wire.TypeBye:
			z.handle(Crossed{other, bridge.Bye{Conn: c}})
		case wire.TypeAbort:
			a, _ := wire.ParseAbort(body)
			z.handle(Aborted{Conn: c, Frame: a})
		case wire.TypeRailState:
			s, _ := wire.ParseRailState(body)
			z.handle(Reported{other, s})
		case wire.TypeLost:
			l, _ := wire.ParseLost(body)
			z.handle(ReportedLoss{other, l})
		}
	}
}

// endsPipe reports to a forwarder that its end of a connection is closed.
func (w *world) endsPipe(p *pipe, side int) {
	p.closed[side], p.queue[side] = true, nil
	f := p.to
	if side == 0 {
		f = p.from
	}
	if z := w.zips[f]; z.shell != nil {
		z.lose(p.ends[side], nil, 0)
	}
}
