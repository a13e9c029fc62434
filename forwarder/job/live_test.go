package job

import (
	"errors"
	"time"

	"github.com/leidenzipper/zipper/forwarder/action"
	"github.com/leidenzipper/zipper/forwarder/bridge"
	"github.com/leidenzipper/zipper/internal/wire"
)

// operation is an event at one forwarder of a world. name is the connection's name there: ofRank of
// a rank, or ofPipe of a connection between forwarders.
type operation struct {
	kind opKind
	name int
	a, b int // The comments of the kinds define a and b.
}

// opKind is the kind of an operation.
type opKind uint8

const (
	opJoin    opKind = iota // Rank a joins.
	opBye                   // The rank sends Bye.
	opLose                  // The connection ends: it is reset if a is 1, else closed.
	opExpire                // The timer of kind a of object b expires.
	opDial                  // The first dial succeeds.
	opUndial                // The first dial fails.
	opAsk                   // Forwarder a offers its connection number b.
	opAnswer                // Forwarder a accepts the connection if b is 0, else it refuses it with code b.
	opDeliver               // Frame a, a number of the model, arrives from forwarder b.
	opHalf                  // A launcher reports that the half of cluster a has ended.
	opRestart               // The forwarder starts again.
	opSettle                // The forwarder forgets what a job that has ended does not need.
	opRename                // A pipe has gone: the names of pipes above its name are one less from now on.
)

// ofRank and ofPipe return the names of a rank's connection and of a connection between forwarders.
// A name says which connection it is, while a number depends on the order of openings.
func ofRank(rank int) int { return -1 - rank }
func ofPipe(pipe int) int { return 1 + pipe }

// effect is an effect of an operation on the rest of the world.
type effect struct {
	kind  effectKind
	name  int             // name is the connection's name, or 0.
	frame int             // frame is the frame's number in the model, for effectSent.
	code  wire.RefuseCode // code is the code of the refusal, for effectRejected.
}

// effectKind is the kind of an effect.
type effectKind uint8

const (
	effectSent     effectKind = iota // A frame goes to the other forwarder.
	effectClose                      // The forwarder closes its end of the connection between forwarders.
	effectOver                       // The rank is over, because it was refused or aborted.
	effectOpened                     // The forwarder has opened a job: connections of the last one are closed.
	effectAccepted                   // The forwarder has its end of the connection.
	effectRejected                   // The forwarder refuses the connection.
)

// forwarder is a forwarder with at most one job, which it runs.
type forwarder struct {
	*shell // shell is nil if there is no job.
	*model
	index int
	conns map[int]action.Conn // conns has the connections of the job by their names.
	next  action.Conn
	out   []effect // out has the effects of the last operation.
}

// do performs an operation.
func (z *forwarder) do(o operation) {
	z.out = nil
	switch o.kind {
	case opJoin:
		z.joins(o)
	case opBye:
		z.ends[z.conns[o.name]].left = true
		z.handle(Departed{Conn: z.conns[o.name]})
	case opLose:
		z.loses(o)
	case opExpire:
		z.expire(action.Timer{Kind: action.Kind(o.a), Of: o.b})
	case opDial, opUndial:
		z.dialled(o)
	case opAsk:
		z.asked(o)
	case opAnswer:
		z.answered(o)
	case opDeliver:
		z.delivered(o)
	case opHalf:
		z.handle(HalfEnded{Cluster: arrangements[z.kind].layout[o.a].Name, Reason: "ended", Code: 1})
	case opRestart:
		z.forget()
	case opSettle:
		if z.dials = nil; z.isOver() { // connections that are dialled for it are closed at once
			z.forget()
		}
	case opRename:
		z.rename(o.name)
	}
	if z.plant != nil {
		z.plant(z)
	}
}

// unsettled reports whether opSettle is due.
func (z *forwarder) unsettled() bool {
	return z.shell != nil && (z.isOver() || z.job.State() >= Ending && len(z.dials) > 0)
}

// isOver reports whether the job has ended, with its last connection.
func (z *forwarder) isOver() bool {
	return z.job.State() == Ended && len(z.shell.ends) == 0 && !z.closing
}

// forget removes the job.
func (z *forwarder) forget() { z.shell, z.conns = nil, map[int]action.Conn{} }

// open opens a job unless there is one that has not ended.
func (z *forwarder) open(first *wire.Join) {
	if z.shell != nil && z.job.State() != Ended {
		return
	}
	s, refused := newShell(time.Unix(1e9, 0), Config{Here: int(first.Here), Timeout: 20 * time.Second, Notice: time.Second, Trunk: 1}, first)
	if refused != nil {
		panic(refused.Error())
	}
	z.forget()
	z.shell = s
	z.subscribe()
	z.out = append(z.out, effect{kind: effectOpened})
}

// subscribe collects the frames that the job sends, and the connections that it does not need any
// more. A rank that was refused is over; a rank whose link is closed opens another one.
func (z *forwarder) subscribe() {
	z.shell.sent = func(c action.Conn, frame []byte) {
		switch n := z.nameOf(c); {
		case n > 0:
			z.out = append(z.out, effect{kind: effectSent, name: n, frame: z.frame(frame)})
		case n < 0 && wire.ParsedHeader(frame).Type == wire.TypeAbort:
			z.out = append(z.out, effect{kind: effectOver, name: n})
		}
	}
	z.shell.finished = func(c action.Conn) {
		switch n := z.nameOf(c); {
		case n > 0:
			z.out = append(z.out, effect{kind: effectClose, name: n})
		case n < 0 && z.ends[c].role == leaving:
			z.out = append(z.out, effect{kind: effectOver, name: n})
		}
	}
}

// nameOf returns the name of a connection, or 0 if it is closed.
func (z *forwarder) nameOf(c action.Conn) int {
	for n, o := range z.conns {
		if o == c {
			return n
		}
	}
	return 0
}

// connect adds a connection with a name.
func (z *forwarder) connect(name int, x *end) action.Conn {
	z.next++
	z.conns[name], z.ends[z.next] = z.next, x
	return z.next
}

// rename removes the name of a pipe that is closed.
func (z *forwarder) rename(name int) {
	conns := map[int]action.Conn{}
	for n, c := range z.conns {
		if n > name {
			n--
		}
		conns[n] = c
	}
	z.conns = conns
}

func (z *forwarder) joins(o operation) {
	join := z.join(o.a, z.index)
	z.open(join)
	c := z.connect(o.name, &end{rank: -1, zipper: -1})
	z.booked += 10
	z.handle(Joined{Conn: c, Link: "l", Join: join, Timeout: 20 * time.Second, Bytes: 10, Room: true})
}

// loses ends a connection, of which the job may not know any more.
func (z *forwarder) loses(o operation) {
	c := z.conns[o.name]
	if c == 0 {
		return
	}
	var cause error
	if o.a == 1 {
		cause = errors.New("reset")
	}
	delete(z.conns, o.name)
	z.lose(c, cause, 0)
}

// dialled opens a connection to another forwarder, or fails to.
func (z *forwarder) dialled(o operation) {
	d := z.dials[0]
	z.dials = z.dials[1:]
	switch {
	case o.kind == opDial:
		c := z.connect(o.name, &end{role: introducing, rank: -1, zipper: d.Zipper, in: true})
		z.handle(Crossed{d.Zipper, bridge.Dialled{Conn: c, Number: d.Number}})
	case d.Gathers:
		z.handle(GiveUp{Code: wire.RefuseTimeout, Reason: "not reached"})
	default:
		z.handle(Crossed{d.Zipper, bridge.NotDialled{Number: d.Number, Err: errors.New("no answer")}})
	}
}

// asked accepts a connection that another forwarder has dialled, or refuses it.
func (z *forwarder) asked(o operation) {
	first := z.firstJoin(o.a)
	begins := z.shell == nil || z.job.State() == Ended
	if begins && o.b > 0 {
		z.out = append(z.out, effect{kind: effectRejected, name: o.name, code: wire.RefuseTaken})
		return
	}
	if !begins && z.job.Reopens(first, o.b) {
		z.handle(GiveUp{Code: wire.RefuseShutdown, Reason: "opened again"})
	}
	own := *first
	own.Here = uint16(z.index)
	z.open(&own)
	c := z.connect(o.name, &end{rank: -1, zipper: -1})
	z.out = append(z.out, effect{kind: effectAccepted, name: o.name})
	z.handle(Offered{Conn: c, Join: first, Here: z.index, Number: o.b})
	if x := z.shell.ends[c]; x.role == leaving {
		z.out = append(z.out, effect{kind: effectRejected, name: o.name, code: x.code})
	}
}

// answered reports the answer to the forwarder that has dialled.
func (z *forwarder) answered(o operation) {
	x, c := z.named(o.name)
	switch {
	case x == nil || x.role != introducing:
	case o.b > 0:
		x.role = leaving
		z.handle(Crossed{o.a, bridge.Refused{Conn: c, Code: wire.RefuseCode(o.b), Reason: "refused"}})
		z.out = append(z.out, effect{kind: effectClose, name: o.name})
	default:
		x.role = bridging
		z.handle(Crossed{o.a, bridge.Introduced{Conn: c}})
	}
}

// named returns the connection with a name; nil if the job does not know it.
func (z *forwarder) named(name int) (*end, action.Conn) {
	if z.shell == nil {
		return nil, 0
	}
	return z.shell.ends[z.conns[name]], z.conns[name]
}

// delivered passes a frame of another forwarder to the job.
func (z *forwarder) delivered(o operation) {
	x, c := z.named(o.name)
	if x == nil {
		return
	}
	b := z.frames[o.a]
	h, body := wire.ParsedHeader(b), b[wire.HeaderLen:]
	switch x.role {
	case bridging:
		if h.Type == wire.TypeJoin {
			z.booked += int64(len(body))
		}
		z.handle(ForwarderFrame{Conn: c, Zipper: o.b, Type: h.Type, Body: body, Room: h.Type == wire.TypeJoin})
	case running:
		switch h.Type {
		case wire.TypeBye:
			z.handle(Crossed{o.b, bridge.Bye{Conn: c}})
		case wire.TypeAbort:
			a, _ := wire.ParseAbort(body)
			z.handle(Aborted{Conn: c, Frame: a})
		case wire.TypeRailState:
			s, _ := wire.ParseRailState(body)
			z.handle(Reported{o.b, s})
		case wire.TypeLost:
			l, _ := wire.ParseLost(body)
			z.handle(ReportedLoss{o.b, l})
		}
	}
}
