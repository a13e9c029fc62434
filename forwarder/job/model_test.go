package job

import (
	"cmp"
	"errors"
	"fmt"
	"hash/fnv"
	"os"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/leidenzipper/zipper/forwarder/action"
	"github.com/leidenzipper/zipper/forwarder/bridge"
	"github.com/leidenzipper/zipper/wire"
)

// Model checking of the state machines as they are: a world of a few ranks and forwarders, of which
// every interleaving of events is explored by breadth-first search, with up to two faults. A state
// is reached again by giving a new world the same events, and is known by a hash of all that can
// have an effect on what follows.

// choice is something that can happen in a world.
type choice struct {
	kind  string
	a, b  int
	timer action.Timer
}

func (c choice) String() string { return fmt.Sprintf("%s %d %d %v", c.kind, c.a, c.b, c.timer) }

// fault reports whether it counts as a fault.
func (c choice) fault() bool {
	return slices.Contains([]string{"lose", "die", "restart", "cut", "undialled"}, c.kind)
}

// late reports whether it happens only when nothing else does: what takes seconds, while all else
// takes microseconds.
func (c choice) late() bool {
	return c.kind == "timer" && (c.timer.Kind == action.Gathering || c.timer.Kind == action.Large)
}

// world is a few forwarders with one job, and its ranks.
type world struct {
	kind   int // kind is the arrangement.
	faults int
	zips   []*forwarder
	ranks  []*process
	pipes  []*pipe // pipes are the connections between forwarders, in the order in which they were dialled.
	wrong  []string
}

// forwarder is one with at most one job.
type forwarder struct {
	*shell
	next action.Conn
	ends int // ends counts the jobs that have ended here.
}

// process is a rank.
type process struct {
	cluster int
	rank    uint32
	links   []*rankLink // links are those to the forwarders that it joins.
	dead    bool
	over    bool // over: it was told that the job is over, or refused.
}

// rankLink is a rank's link to a forwarder.
type rankLink struct {
	zip   int
	conn  action.Conn // conn is 0 if there is none now.
	bye   bool        // bye: it has said so.
	lost  bool        // lost: the rank knows that it has to open another one.
	tries int
}

// pipe is a connection between two forwarders, as yet without its other end if there is none.
type pipe struct {
	from, to int // from has dialled.
	ends     [2]action.Conn
	number   int
	queue    [2][][]byte // queue has what was sent to each end.
	closed   [2]bool     // closed: that end is closed, and its forwarder knows.
	ending   [2]bool     // ending: that end is to be closed.
	cut      bool
	asked    bool // asked: the other end has been asked to take it.
	answer   *bridge.Refused
	answered bool
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
				p.links = []*rankLink{{zip: c}}
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

// join is a rank's.
func (w *world) join(p *process, l *rankLink) *wire.Join {
	here := uint16(0)
	if len(arrangements[w.kind].zippers) > 0 {
		here = uint16(l.zip)
	}
	return joinOf(w.kind, p.cluster, p.rank, here, modelPatience)
}

// choices are what can happen now.
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
			case l.conn == 0 && l.tries < 3:
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

// choicesOf are those of a connection between forwarders.
func (w *world) choicesOf(n int, p *pipe) (list []choice) {
	add := func(kind string, b int) { list = append(list, choice{kind: kind, a: n, b: b}) }
	switch {
	case p.closed[0] && p.closed[1]:
		return nil
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

// happen has something happen.
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
		w.zips[l.zip].handle(Left{Conn: l.conn})
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
	for f, z := range w.zips {
		if z.shell == nil {
			continue
		}
		for _, s := range z.faults {
			w.wrong = append(w.wrong, fmt.Sprintf("forwarder %d: %s", f, s))
		}
		if z.job.State() == Ended && len(z.shell.ends) == 0 && !z.closing {
			z.shell = nil
			z.ends++
		}
	}
}

// open gives a forwarder a job.
func (w *world) open(f int, first *wire.Join) *forwarder {
	z := w.zips[f]
	if z.shell == nil || z.job.State() == Ended {
		s, refused := newShell(time.Unix(1e9, 0), Config{Here: int(first.Here), Timeout: 20 * time.Second, Notice: time.Second, Trunk: 1}, first)
		if refused != nil {
			w.wrong = append(w.wrong, refused.Error())
			return z
		}
		z.shell = s
		for _, p := range w.pipes { // those of the job that has ended are closed
			p.ending[0] = p.ending[0] || p.from == f
			p.ending[1] = p.ending[1] || p.to == f && p.ends[1] != 0
		}
		s.sent = func(c action.Conn, frame []byte) { w.sent(f, c, frame) }
		s.finished = func(c action.Conn) { w.finished(f, c) }
	}
	return z
}

// joins has a rank join a forwarder.
func (w *world) joins(p *process, l *rankLink) {
	z := w.open(l.zip, w.join(p, l))
	z.next++
	l.conn, l.lost = z.next, false
	l.tries++
	z.shell.ends[l.conn] = &end{rank: -1, zipper: -1}
	z.booked += 10
	z.handle(Joined{Conn: l.conn, Link: "l", Join: w.join(p, l), Timeout: 20 * time.Second, Bytes: 10, Room: true})
}

// loses takes a rank's link away.
func (w *world) loses(l *rankLink, cause error) {
	c := l.conn
	l.conn, l.lost = 0, true
	if z := w.zips[l.zip]; z.shell != nil {
		z.lose(c, cause, false)
	}
}

// of finds whose connection one of a forwarder's is.
func (w *world) of(f int, c action.Conn) (p *process, l *rankLink, pi *pipe, side int) {
	for _, p := range w.ranks {
		for _, l := range p.links {
			if l.zip == f && l.conn == c {
				return p, l, nil, 0
			}
		}
	}
	for _, pi := range w.pipes {
		if pi.from == f && pi.ends[0] == c {
			return nil, nil, pi, 0
		}
		if pi.to == f && pi.ends[1] == c {
			return nil, nil, pi, 1
		}
	}
	return nil, nil, nil, 0
}

// sent takes a frame that a forwarder sends.
func (w *world) sent(f int, c action.Conn, frame []byte) {
	p, _, pi, side := w.of(f, c)
	switch {
	case pi != nil && !pi.cut && !pi.closed[1-side]:
		pi.queue[1-side] = append(pi.queue[1-side], frame)
	case p != nil && wire.ParsedHeader(frame).Type == wire.TypeAbort:
		p.over = true
	}
}

// finished closes a connection that the job does not want any more. A rank that was refused is
// over; one whose link is closed opens another one.
func (w *world) finished(f int, c action.Conn) {
	p, l, pi, side := w.of(f, c)
	switch {
	case pi != nil:
		pi.ending[side] = true
	case p != nil:
		x := w.zips[f].shell.ends[c]
		p.over = p.over || x.role == leaving
		_ = l
	}
}

// dials opens a connection to another forwarder, or does not.
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

// asks has the other end take a connection that was dialled, or refuse it.
func (w *world) asks(p *pipe) {
	p.asked = true
	var first *wire.Join // that the dialler shows
	for _, r := range w.ranks {
		if r.cluster == p.from && first == nil {
			first = w.join(r, r.links[0])
		}
	}
	z := w.zips[p.to]
	begins := z.shell == nil || z.job.State() == Ended
	if begins && p.number > 0 {
		p.answer = &bridge.Refused{Code: wire.RefuseTaken, Reason: "not here"}
		return
	}
	if !begins && z.job.OpensAgain(first, p.number) {
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
	z.handle(Offered{Conn: z.next, Join: first, Here: p.to, Number: p.number, Begins: begins})
	if z.shell.ends[p.ends[1]].role == leaving {
		p.answer = &bridge.Refused{Code: wire.RefuseTaken, Reason: "refused"}
	}
}

// answers tells the dialler what became of it.
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
		p.ending[0] = true
		return
	}
	x.role = bridging
	z.handle(Crossed{p.to, bridge.Introduced{Conn: p.ends[0]}})
}

// delivers gives an end the next frame.
func (w *world) delivers(p *pipe, side int) {
	b := p.queue[side][0]
	p.queue[side] = p.queue[side][1:]
	f, other := p.to, p.from
	if side == 0 {
		f, other = p.from, p.to
	}
	z := w.zips[f]
	if z.shell == nil || z.shell.ends[p.ends[side]] == nil || p.ending[side] {
		return
	}
	h, body, c := wire.ParsedHeader(b), b[wire.HeaderLen:], p.ends[side]
	switch z.shell.ends[c].role {
	case bridging:
		if h.Type == wire.TypeJoin {
			z.booked += int64(len(body))
		}
		z.handle(Heard{Conn: c, Zipper: other, Type: h.Type, Body: body, Room: h.Type == wire.TypeJoin})
	case running:
		switch h.Type {
		case wire.TypeBye:
			z.handle(Crossed{other, bridge.Bye{Conn: c}})
		case wire.TypeAbort:
			a, _ := wire.ParseAbort(body)
			z.handle(Aborted{Conn: c, Said: a})
		case wire.TypeRailState:
			s, _ := wire.ParseRailState(body)
			z.handle(Reported{other, s})
		}
	}
}

// endsPipe tells a forwarder that its end of a connection is closed.
func (w *world) endsPipe(p *pipe, side int) {
	p.closed[side] = true
	f := p.to
	if side == 0 {
		f = p.from
	}
	if z := w.zips[f]; z.shell != nil {
		z.lose(p.ends[side], nil, false)
	}
}

// restarts starts a forwarder again, which forgets its job.
func (w *world) restarts(f int) {
	w.zips[f].shell = nil
	for _, p := range w.ranks {
		for _, l := range p.links {
			if l.zip == f && l.conn != 0 {
				l.conn, l.lost = 0, true
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

// stuck says what is left of a world in which nothing can happen any more.
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

// hash is of all that can have an effect on what follows.
func (w *world) hash() uint64 {
	e := encoder{seen: map[uintptr]int{}}
	e.number(int64(w.faults))
	for _, z := range w.zips {
		if z.shell == nil {
			e.number(-1)
			continue
		}
		e.value(reflect.ValueOf(z.job).Elem())
		e.value(reflect.ValueOf(z.shell.ends))
		e.value(reflect.ValueOf(z.timers))
		e.value(reflect.ValueOf(z.dials))
	}
	for _, p := range w.ranks {
		e.value(reflect.ValueOf(*p))
	}
	for _, p := range w.pipes {
		if !p.closed[0] || !p.closed[1] {
			e.value(reflect.ValueOf(*p))
		}
	}
	h := fnv.New64a()
	h.Write(e.out)
	return h.Sum64()
}

// encoder writes values, and what they point to once.
type encoder struct {
	out  []byte
	seen map[uintptr]int
}

// constant are the fields that are the same in all worlds, or that have no effect.
var constant = map[string]bool{"out": true, "now": true, "tries": true, "cfg": true, "id": true, "clusters": true,
	"zippers": true, "tree": true, "networks": true, "base": true, "model": true, "Config": true}

func (e *encoder) number(n int64) { e.out = append(strconv.AppendInt(e.out, n, 36), ' ') }

func (e *encoder) value(v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer:
		e.pointer(v)
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[time.Time]() {
			return
		}
		for i := range v.NumField() {
			if !constant[v.Type().Field(i).Name] {
				e.value(v.Field(i))
			}
		}
	case reflect.Map:
		e.table(v)
	case reflect.Slice, reflect.Array:
		e.number(int64(v.Len()))
		for i := range v.Len() {
			e.value(v.Index(i))
		}
	case reflect.Interface:
		if !v.IsNil() {
			e.out = append(e.out, v.Elem().Type().Name()...)
			e.value(v.Elem())
		}
	case reflect.String:
		e.number(int64(v.Len()))
		e.out = append(e.out, v.String()...)
	case reflect.Bool:
		e.number(map[bool]int64{true: 1}[v.Bool()])
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		e.number(v.Int())
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		e.number(int64(v.Uint()))
	}
}

func (e *encoder) pointer(v reflect.Value) {
	if v.IsNil() {
		e.number(-1)
		return
	}
	n, ok := e.seen[v.Pointer()]
	if !ok {
		n = len(e.seen)
		e.seen[v.Pointer()] = n
	}
	if e.number(int64(n)); !ok {
		e.value(v.Elem())
	}
}

// table writes a map in the order of its encoded keys.
func (e *encoder) table(v reflect.Value) {
	type entry struct {
		key   string
		value reflect.Value
	}
	var entries []entry
	for it := v.MapRange(); it.Next(); {
		k := encoder{seen: map[uintptr]int{}}
		k.value(it.Key())
		entries = append(entries, entry{string(k.out), it.Value()})
	}
	slices.SortFunc(entries, func(a, b entry) int { return strings.Compare(a.key, b.key) })
	e.number(int64(len(entries)))
	for _, x := range entries {
		e.out = append(e.out, x.key...)
		e.value(x.value)
	}
}

// explore explores all worlds of an arrangement with so many faults, and returns how many states
// there are.
func explore(t *testing.T, kind, faults, most int) int {
	t.Helper()
	type node struct {
		parent int
		by     choice
	}
	nodes := []node{{parent: -1}}
	path := func(n int) (list []choice) {
		for ; n > 0; n = nodes[n].parent {
			list = append(list, nodes[n].by)
		}
		slices.Reverse(list)
		return list
	}
	replay := func(list []choice) *world {
		w := newWorld(kind)
		for _, c := range list {
			w.happen(c)
		}
		return w
	}
	known := map[uint64]bool{newWorld(kind).hash(): true}
	for n := 0; n < len(nodes); n++ {
		way := path(n)
		w := replay(way)
		all := w.choices()
		calm := slices.ContainsFunc(all, func(c choice) bool { return !c.fault() && !c.late() })
		if len(all) == 0 || !slices.ContainsFunc(all, func(c choice) bool { return !c.fault() }) {
			if s := w.stuck(); s != "" {
				t.Fatalf("%s: nothing can happen, but %s, after\n%v", arrangements[kind].name, s, way)
			}
		}
		for _, c := range all {
			if c.fault() && w.faults >= faults || c.late() && calm {
				continue
			}
			next := replay(way)
			next.happen(c)
			if len(next.wrong) > 0 {
				t.Fatalf("%s: %v after\n%v", arrangements[kind].name, next.wrong, append(way, c))
			}
			if h := next.hash(); !known[h] {
				known[h] = true
				nodes = append(nodes, node{n, c})
			}
			if len(nodes) >= most {
				t.Logf("%s: %d faults: stopped after %d states", arrangements[kind].name, faults, len(nodes))
				return len(nodes)
			}
		}
	}
	t.Logf("%s: %d faults: %d states", arrangements[kind].name, faults, len(nodes))
	return len(nodes)
}

// TestModel explores jobs of two clusters, of one and of two ranks, over one forwarder, over two
// side by side, and over a row of two: whatever the order of joins, byes, losses, timers and
// restarts, no transition is illegal, no job ends twice, no frame goes to a rank that has left, and
// everybody ends. The long form has up to two faults, the short one the first 1500 states with one
// or none.
func TestModel(t *testing.T) {
	long := os.Getenv("ZIPPER_LONG") != ""
	for _, c := range []struct{ kind, faults, most int }{{0, 1, 1500}, {2, 0, 1500}, {3, 0, 1500}} {
		if long {
			c.faults, c.most = 2, 1<<62
		}
		explore(t, c.kind, c.faults, c.most)
	}
}
