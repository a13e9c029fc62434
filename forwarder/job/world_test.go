package job

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/leidenzipper/zipper/forwarder/action"
	"github.com/leidenzipper/zipper/internal/wire"
)

// world has a few forwarders with one job, and its ranks.
type world struct {
	kind   int // kind is the arrangement.
	faults int
	zips   []*forwarder
	ranks  []*process
	// pipes has the open connections between forwarders, in the order of dialling.
	pipes []*pipe
	wrong []string
	room  []byte // room is the buffer in which states are encoded.
}

// forwarder is a forwarder with at most one job.
type forwarder struct {
	*shell
	next action.Conn
	ends int // ends counts the jobs that have ended here.
}

// process is a process of the job, with its rank.
type process struct {
	cluster int
	rank    uint32
	links   []*rankLink // links has the links to the forwarders that it joins.
	began   bool        // began says that it has joined a forwarder.
	dead    bool
	over    bool // over says that it was told that the job is over, or was refused.
}

// rankLink is a rank's link to a forwarder.
type rankLink struct {
	zip  int
	conn action.Conn // conn is the connection, or 0 if none is open.
	bye  bool        // bye says that it has sent Bye.
}

const modelPatience = 2000

func newWorld(kind int) *world {
	w := &world{kind: kind}
	a := &arrangements[kind]
	n := max(1, len(a.zippers))
	if a.rails > 1 && len(a.zippers) == 0 {
		n = 2
	}
	for range n {
		w.zips = append(w.zips, &forwarder{})
	}
	for c, cl := range a.layout {
		for r := range cl.Size {
			p := &process{cluster: c, rank: r}
			switch {
			case len(a.zippers) > 0:
				for z, on := range a.zippers {
					if slices.Contains(on, uint16(c)) {
						p.links = append(p.links, &rankLink{zip: z})
					}
				}
			default:
				for z := range n {
					p.links = append(p.links, &rankLink{zip: z})
				}
			}
			w.ranks = append(w.ranks, p)
		}
	}
	return w
}

// join returns the Join of a rank.
func (w *world) join(p *process, l *rankLink) *wire.Join {
	here := uint16(0)
	if len(arrangements[w.kind].zippers) > 0 {
		here = uint16(l.zip)
	}
	return joinOf(w.kind, p.cluster, p.rank, here, modelPatience)
}

// choices returns the events that can happen now.
func (w *world) choices() (list []choice) {
	add := func(kind string, a, b int) { list = append(list, choice{kind: kind, a: a, b: b}) }
	for i, p := range w.ranks {
		for k, l := range p.links {
			z := w.zips[l.zip]
			var x *end
			if z.shell != nil {
				x = z.shell.ends[l.conn]
			}
			switch {
			case l.conn != 0 && (p.over || l.bye || x == nil || x.ended):
				add("close", i, k)
			case p.dead || p.over || l.bye:
			case l.conn == 0 && w.turn(i):
				add("join", i, k)
			case l.conn != 0 && x.role == running:
				add("bye", i, k)
				add("lose", i, k)
			case l.conn != 0:
				add("lose", i, k)
			}
		}
		if !p.dead && !p.over && slices.ContainsFunc(p.links, func(l *rankLink) bool { return l.conn != 0 && !l.bye }) {
			add("die", i, 0)
		}
	}
	for c := range arrangements[w.kind].layout {
		if w.mayPerish(c) {
			add("perish", c, 0)
		}
	}
	for f, z := range w.zips {
		if z.shell == nil {
			continue
		}
		for t := range z.timers {
			if t.Kind != action.Notice && t.Kind != action.Measure {
				list = append(list, choice{kind: "timer", a: f, timer: t})
			}
		}
		for range z.dials {
			add("dial", f, 0)
			add("undialled", f, 0)
			break
		}
		add("restart", f, 0)
	}
	for n, p := range w.pipes {
		list = append(list, w.choicesOf(n, p)...)
	}
	slices.SortFunc(list, func(a, b choice) int {
		return cmp.Or(strings.Compare(a.kind, b.kind), a.a-b.a, a.b-b.b, int(a.timer.Kind)-int(b.timer.Kind), a.timer.Of-b.timer.Of)
	})
	return list
}

// turn reports whether a rank may join. The ranks of a cluster are alike, so they join for the
// first time in their order.
func (w *world) turn(i int) bool {
	return w.ranks[i].began || i == 0 || w.ranks[i-1].cluster != w.ranks[i].cluster || w.ranks[i-1].began
}

// alone returns a choice that suffices to explore, if any: the end of a connection that its job
// ignores from now on, and after which its process does nothing. The same state is reached if other
// events happen before or after it. The last connection of a job is not among them, because the
// forwarder forgets the job with it.
func (w *world) alone(list []choice) (choice, bool) {
	deaf := func(f int, c action.Conn) bool {
		z := w.zips[f]
		if z.shell == nil {
			return true
		}
		x := z.shell.ends[c]
		return x == nil || len(z.shell.ends) > 1 && (x.role == leaving || z.job.State() == Ended)
	}
	for _, c := range list {
		switch c.kind {
		case "close":
			p := w.ranks[c.a]
			if l := p.links[c.b]; p.over && deaf(l.zip, l.conn) {
				return c, true
			}
		case "end":
			p := w.pipes[c.a]
			if deaf([]int{p.from, p.to}[c.b], p.ends[c.b]) && (p.cut || p.ending[c.b]) {
				return c, true
			}
		}
	}
	return choice{}, false
}

// happen performs a choice.
func (w *world) happen(c choice) {
	if c.fault() {
		w.faults++
	}
	switch c.kind {
	case "join":
		w.joins(w.ranks[c.a], w.ranks[c.a].links[c.b])
	case "bye":
		l := w.ranks[c.a].links[c.b]
		l.bye = true
		w.zips[l.zip].shell.ends[l.conn].left = true
		w.zips[l.zip].handle(Departed{Conn: l.conn})
	case "close", "lose":
		w.loses(w.ranks[c.a].links[c.b], map[string]error{"lose": errors.New("reset")}[c.kind])
	case "die":
		p := w.ranks[c.a]
		p.dead = true
		for _, l := range p.links {
			if l.conn != 0 {
				w.loses(l, errors.New("reset"))
			}
		}
	case "perish":
		w.perishes(c.a)
	case "timer":
		w.zips[c.a].expire(c.timer)
	case "dial", "undialled":
		w.dials(c)
	case "restart":
		w.restarts(c.a)
	case "ask":
		w.asks(w.pipes[c.a])
	case "answer":
		w.answers(w.pipes[c.a])
	case "deliver":
		w.delivers(w.pipes[c.a], c.b)
	case "end":
		w.endsPipe(w.pipes[c.a], c.b)
	case "cut":
		p := w.pipes[c.a]
		p.cut, p.queue = true, [2][][]byte{}
	}
	w.pipes = slices.DeleteFunc(w.pipes, func(p *pipe) bool { return p.closed[0] && p.closed[1] })
	for f, z := range w.zips {
		if z.shell == nil {
			continue
		}
		for _, s := range z.faults {
			w.wrong = append(w.wrong, fmt.Sprintf("forwarder %d: %s", f, s))
		}
		if z.job.State() >= Ending { // connections that are dialled for it are closed at once
			z.dials = nil
		}
		if z.job.State() == Ended && len(z.shell.ends) == 0 && !z.closing {
			z.shell = nil
			z.ends++
		}
	}
}

// mayPerish reports whether a cluster can be lost as a whole: its processes take part in a job that
// outlives clusters.
func (w *world) mayPerish(cluster int) bool {
	return arrangements[w.kind].outlives != "" && slices.ContainsFunc(w.ranks, func(p *process) bool {
		return p.cluster == cluster && !p.dead && !p.over && slices.ContainsFunc(p.links, func(l *rankLink) bool { return l.conn != 0 && !l.bye })
	})
}

// perishes ends all processes of a cluster. Its launcher then reports that to their forwarders.
func (w *world) perishes(cluster int) {
	forwarders := map[int]bool{}
	for _, p := range w.ranks {
		if p.cluster != cluster {
			continue
		}
		p.dead = true
		for _, l := range p.links {
			forwarders[l.zip] = true
			if l.conn != 0 {
				w.loses(l, errors.New("reset"))
			}
		}
	}
	for _, f := range sorted(forwarders) {
		z := w.zips[f]
		if z.shell == nil {
			continue
		}
		others := z.job.State() == Running && slices.ContainsFunc(w.ranks, func(p *process) bool {
			return p.cluster != cluster && !p.dead && !p.over && slices.ContainsFunc(p.links, func(l *rankLink) bool {
				return l.zip == f && l.conn != 0 && !l.bye && !z.shell.ends[l.conn].ended && z.shell.ends[l.conn].role == running
			})
		})
		z.handle(HalfEnded{Cluster: arrangements[w.kind].layout[cluster].Name, Reason: "ended", Code: 1})
		if others && z.job.State() != Running {
			w.wrong = append(w.wrong, fmt.Sprintf("forwarder %d ends its job with cluster %d, and other clusters live", f, cluster))
		}
	}
}

// open opens a job at a forwarder.
func (w *world) open(f int, first *wire.Join) *forwarder {
	z := w.zips[f]
	if z.shell == nil || z.job.State() == Ended {
		s, refused := newShell(time.Unix(1e9, 0), Config{Here: int(first.Here), Timeout: 20 * time.Second, Notice: time.Second, Trunk: 1}, first)
		if refused != nil {
			w.wrong = append(w.wrong, refused.Error())
			return z
		}
		z.shell = s
		for _, p := range w.pipes { // the connections of the job that has ended are closed
			for side, at := range []int{p.from, p.to} {
				if at == f && p.ends[side] != 0 {
					p.ending[side], p.queue[side] = true, nil
				}
			}
		}
		w.connect(f)
	}
	return z
}

// connect subscribes the world to the frames and closed connections of a forwarder.
func (w *world) connect(f int) {
	s := w.zips[f].shell
	s.sent = func(c action.Conn, frame []byte) { w.sent(f, c, frame) }
	s.finished = func(c action.Conn) { w.finished(f, c) }
}

// joins lets a rank join a forwarder.
func (w *world) joins(p *process, l *rankLink) {
	z := w.open(l.zip, w.join(p, l))
	z.next++
	l.conn, p.began = z.next, true
	z.shell.ends[l.conn] = &end{rank: -1, zipper: -1}
	z.booked += 10
	z.handle(Joined{Conn: l.conn, Link: "l", Join: w.join(p, l), Timeout: 20 * time.Second, Bytes: 10, Room: true})
}

// loses breaks a rank's link.
func (w *world) loses(l *rankLink, cause error) {
	c := l.conn
	l.conn = 0
	if z := w.zips[l.zip]; z.shell != nil {
		z.lose(c, cause, 0)
	}
}

// of returns the process, or the pipe and the side, at the other end of a forwarder's connection.
func (w *world) of(f int, c action.Conn) (p *process, pi *pipe, side int) {
	for _, p := range w.ranks {
		for _, l := range p.links {
			if l.zip == f && l.conn == c {
				return p, nil, 0
			}
		}
	}
	for _, pi := range w.pipes {
		if pi.from == f && pi.ends[0] == c {
			return nil, pi, 0
		}
		if pi.to == f && pi.ends[1] == c {
			return nil, pi, 1
		}
	}
	return nil, nil, 0
}

// sent handles a frame that a forwarder sends.
func (w *world) sent(f int, c action.Conn, frame []byte) {
	p, pi, side := w.of(f, c)
	switch {
	case pi != nil && !pi.cut && !pi.closed[1-side] && !pi.ending[1-side]:
		pi.queue[1-side] = append(pi.queue[1-side], frame)
	case p != nil && wire.ParsedHeader(frame).Type == wire.TypeAbort:
		p.over = true
	}
}

// finished closes a connection that the job does not need any more. A rank that was refused is
// over; a rank whose link is closed opens another one.
func (w *world) finished(f int, c action.Conn) {
	p, pi, side := w.of(f, c)
	switch {
	case pi != nil:
		pi.ending[side], pi.queue[side] = true, nil
	case p != nil:
		x := w.zips[f].shell.ends[c]
		p.over = p.over || x.role == leaving
	}
}

// restarts starts a forwarder again, which forgets its job.
func (w *world) restarts(f int) {
	w.zips[f].shell = nil
	for _, p := range w.ranks {
		for _, l := range p.links {
			if l.zip == f && l.conn != 0 {
				l.conn = 0
			}
		}
	}
	for _, p := range w.pipes {
		if p.from == f {
			p.closed[0], p.cut = true, true
			p.closed[1] = p.closed[1] || p.ends[1] == 0
		}
		if p.to == f {
			p.closed[1], p.cut = true, true
		}
		if p.from == f || p.to == f {
			p.queue = [2][][]byte{}
		}
	}
}

// stuck describes the rest of a world without further events.
func (w *world) stuck() string {
	var left []string
	for f, z := range w.zips {
		if z.shell != nil && z.job.State() != Ended {
			left = append(left, fmt.Sprintf("forwarder %d has a job that is %v", f, z.job.State()))
		}
	}
	for i, p := range w.ranks {
		for _, l := range p.links {
			if !p.dead && !p.over && l.conn != 0 {
				left = append(left, fmt.Sprintf("rank %d waits", i))
			}
		}
	}
	return strings.Join(left, ", ")
}
