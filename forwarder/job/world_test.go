package job

import (
	"fmt"
	"slices"
	"strings"

	"github.com/leidenzipper/zipper/forwarder/action"
)

// world is a state of a few forwarders with one job, and of its ranks.
type world struct {
	*model
	zips  []*local
	ranks []process
	pipes []pipe // pipes has the open connections between forwarders, in the order of dialling.
	wrong []string
}

// process is a process of the job, with its rank.
type process struct {
	links [2]rankLink // links has the links to the forwarders that it joins.
	began bool        // began says that it has joined a forwarder.
	dead  bool
	over  bool // over says that it was told that the job is over, or was refused.
}

// rankLink is a rank's link to a forwarder.
type rankLink struct {
	open bool
	bye  bool // bye says that the rank has sent Bye.
}

// newWorld returns the world before the first event.
func (m *model) newWorld() *world {
	return &world{model: m, zips: slices.Clone(m.states[:m.zips]), ranks: make([]process, len(m.places))}
}

// clone returns a copy. Queues of pipes are shared, because they are not changed in place.
func (w *world) clone() *world {
	return &world{model: w.model, zips: slices.Clone(w.zips), ranks: slices.Clone(w.ranks), pipes: slices.Clone(w.pipes)}
}

// inJob reports whether the process takes part in the job: it has a link, and has not left.
func (p *process) inJob() bool {
	return !p.dead && !p.over && slices.ContainsFunc(p.links[:], func(l rankLink) bool { return l.open && !l.bye })
}

// choices returns the events that can happen now.
func (w *world) choices() (list []choice) {
	add := func(kind choiceKind, a, b int) { list = append(list, choice{kind: kind, a: a, b: b}) }
	for i := range w.ranks {
		p := &w.ranks[i]
		for k, f := range w.places[i].zips {
			l, x := p.links[k], w.zips[f].end(ofRank(i))
			switch {
			case l.open && (p.over || l.bye || x == nil || x.ended):
				add(closes, i, k)
			case p.dead || p.over || l.bye:
			case !l.open && w.turn(i):
				add(joins, i, k)
			case l.open && x.role == running:
				add(byes, i, k)
				add(loses, i, k)
			case l.open:
				add(loses, i, k)
			}
		}
		if p.inJob() {
			add(dies, i, 0)
		}
	}
	for c := range arrangements[w.kind].layout {
		if w.mayPerish(c) {
			add(perishes, c, 0)
		}
	}
	for f, z := range w.zips {
		for _, t := range z.timers {
			list = append(list, choice{kind: expires, a: f, timer: t})
		}
		if len(z.dials) > 0 {
			add(dials, f, 0)
			add(undials, f, 0)
		}
		add(restarts, f, 0)
	}
	for n := range w.pipes {
		list = w.pipes[n].choices(n, list)
	}
	return list
}

// turn reports whether a rank may join. The ranks of a cluster are alike, so they join for the
// first time in their order.
func (w *world) turn(i int) bool {
	return w.ranks[i].began || i == 0 || w.places[i-1].cluster != w.places[i].cluster || w.ranks[i-1].began
}

// mayPerish reports whether a cluster can be lost as a whole: its processes take part in a job that
// outlives clusters.
func (w *world) mayPerish(cluster int) bool {
	if arrangements[w.kind].outlives == "" {
		return false
	}
	for i := range w.ranks {
		if w.places[i].cluster == cluster && w.ranks[i].inJob() {
			return true
		}
	}
	return false
}

// alone returns a choice that suffices to explore, if any: the end of a connection that its job
// ignores from now on, and after which its process does nothing. The same state is reached if other
// events happen before or after it (TestAloneCommutes). The forwarder forgets a job that has ended
// with its last connection, which makes no difference to later events.
func (w *world) alone(list []choice) (choice, bool) {
	deaf := func(f, name int) bool {
		z := w.zips[f]
		x := z.end(name)
		return !z.job || x == nil || x.deaf
	}
	for _, c := range list {
		switch c.kind {
		case closes:
			if w.ranks[c.a].over && deaf(w.places[c.a].zips[c.b], ofRank(c.a)) {
				return c, true
			}
		case ends:
			if p := &w.pipes[c.a]; deaf(p.at[c.b], ofPipe(c.a)) && (p.cut || p.ending[c.b]) {
				return c, true
			}
		}
	}
	return choice{}, false
}

// happen performs a choice.
func (w *world) happen(c choice) {
	switch c.kind {
	case joins:
		w.ranks[c.a].links[c.b].open, w.ranks[c.a].began = true, true
		w.do(w.places[c.a].zips[c.b], operation{kind: opJoin, name: ofRank(c.a), a: c.a})
	case byes:
		w.ranks[c.a].links[c.b].bye = true
		w.do(w.places[c.a].zips[c.b], operation{kind: opBye, name: ofRank(c.a)})
	case closes:
		w.loses(c.a, c.b, 0)
	case loses:
		w.loses(c.a, c.b, 1)
	case dies:
		w.dies(c.a)
	case perishes:
		w.perishes(c.a)
	case expires:
		w.do(c.a, operation{kind: opExpire, a: int(c.timer.Kind), b: c.timer.Of})
	case restarts:
		w.restarts(c.a)
	case undials:
		w.do(c.a, operation{kind: opUndial})
	default:
		w.crosses(c)
	}
	for f := range w.zips {
		if w.zips[f].unsettled {
			w.do(f, operation{kind: opSettle})
		}
	}
	w.removePipes()
}

// do performs an operation on a forwarder, and applies its effects on the ranks and the pipes.
func (w *world) do(f int, o operation) {
	s := w.zips[f].step(o)
	w.zips[f] = s.to
	for _, text := range s.wrong {
		w.wrong = append(w.wrong, fmt.Sprintf("forwarder %d: %s", f, text))
	}
	for _, e := range s.out {
		switch {
		case e.kind == effectOver:
			w.ranks[-1-e.name].over = true
		case e.kind == effectOpened:
			w.closePipes(f)
		default:
			w.pipes[e.name-1].apply(f, e)
		}
	}
}

// loses breaks a rank's link, by a reset if reset is 1.
func (w *world) loses(rank, link, reset int) {
	w.ranks[rank].links[link].open = false
	if f := w.places[rank].zips[link]; w.zips[f].end(ofRank(rank)) != nil {
		w.do(f, operation{kind: opLose, name: ofRank(rank), a: reset})
	}
}

// dies ends a process.
func (w *world) dies(rank int) {
	w.ranks[rank].dead = true
	for k := range w.places[rank].zips {
		if w.ranks[rank].links[k].open {
			w.loses(rank, k, 1)
		}
	}
}

// perishes ends all processes of a cluster. Its launcher then reports that to their forwarders.
func (w *world) perishes(cluster int) {
	var forwarders []int
	for i, s := range w.places {
		if s.cluster == cluster {
			w.dies(i)
			forwarders = append(forwarders, s.zips...)
		}
	}
	slices.Sort(forwarders)
	for _, f := range slices.Compact(forwarders) {
		if !w.zips[f].job {
			continue
		}
		others := w.zips[f].state == Running && w.othersLive(f, cluster)
		w.do(f, operation{kind: opHalf, a: cluster})
		if others && w.zips[f].state != Running {
			w.wrong = append(w.wrong, fmt.Sprintf("forwarder %d ends its job with cluster %d, and other clusters live", f, cluster))
		}
	}
}

// othersLive reports whether ranks of other clusters have a link to a forwarder.
func (w *world) othersLive(f, cluster int) bool {
	for i := range w.ranks {
		p := &w.ranks[i]
		for k, at := range w.places[i].zips {
			x := w.zips[f].end(ofRank(i))
			if at == f && w.places[i].cluster != cluster && !p.dead && !p.over && p.links[k].open && !p.links[k].bye &&
				x != nil && !x.ended && x.role == running {
				return true
			}
		}
	}
	return false
}

// restarts starts a forwarder again, which forgets its job.
func (w *world) restarts(f int) {
	w.do(f, operation{kind: opRestart})
	for i := range w.ranks {
		for k, at := range w.places[i].zips {
			if at == f {
				w.ranks[i].links[k].open = false
			}
		}
	}
	for n := range w.pipes {
		w.pipes[n].restarted(f)
	}
}

// stuck describes the rest of a world without further events.
func (w *world) stuck() string {
	var left []string
	for f, z := range w.zips {
		if z.job && z.state != Ended {
			left = append(left, fmt.Sprintf("forwarder %d has a job that is %v", f, z.state))
		}
	}
	for i := range w.ranks {
		for _, l := range w.ranks[i].links {
			if !w.ranks[i].dead && !w.ranks[i].over && l.open {
				left = append(left, fmt.Sprintf("rank %d waits", i))
			}
		}
	}
	return strings.Join(left, ", ")
}

// choice is a possible event in a world.
type choice struct {
	kind  choiceKind
	a, b  int
	timer action.Timer
}

// choiceKind says what happens.
type choiceKind uint8

const (
	joins    choiceKind = iota // Rank a joins over its link b.
	byes                       // Rank a sends Bye over its link b.
	closes                     // Rank a closes its link b.
	expires                    // A timer of forwarder a expires.
	dials                      // Forwarder a opens a connection to another one.
	asks                       // Pipe a reaches the forwarder that was dialled.
	answers                    // The answer to pipe a reaches the forwarder that has dialled.
	delivers                   // The first frame of pipe a reaches side b.
	ends                       // Side b of pipe a ends.

	// Faults.

	loses    // Rank a loses its link b.
	dies     // Rank a dies.
	perishes // All ranks of cluster a die.
	restarts // Forwarder a starts again.
	undials  // Forwarder a does not reach another one.
	cuts     // Pipe a is cut.
)

var choiceNames = [...]string{"join", "bye", "close", "timer", "dial", "ask", "answer", "deliver", "end", "lose", "die",
	"perish", "restart", "undialled", "cut"}

func (c choice) String() string {
	if c.kind == expires {
		return fmt.Sprintf("timer %v of %d at %d", c.timer.Kind, c.timer.Of, c.a)
	}
	return fmt.Sprintf("%s %d %d", choiceNames[c.kind], c.a, c.b)
}

// fault reports whether the event counts as a fault.
func (c choice) fault() bool { return c.kind >= loses }

// late reports whether the event is the end of a timer so long that it expires only when no other
// event is possible.
func (c choice) late() bool {
	return c.kind == expires && (c.timer.Kind == action.Gathering || c.timer.Kind == action.Large)
}
