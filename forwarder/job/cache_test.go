package job

import (
	"hash/maphash"
	"slices"

	"github.com/leidenzipper/zipper/forwarder/action"
	"github.com/leidenzipper/zipper/forwarder/bridge"
	"github.com/leidenzipper/zipper/internal/wire"
)

// A forwarder changes by operations only, and there are far fewer states of one forwarder than of a
// world: 35 thousand for four million of a row of two. So a model keeps each state of a forwarder
// once, and performs each operation on it once. TestEqualHashesHaveEqualFutures checks that the
// states and effects are those of a forwarder on which all operations are performed.

// model is an arrangement, with the states of forwarders that its worlds have had so far.
type model struct {
	kind   int
	places []seat
	zips   int // zips is the number of forwarders.
	states []*local
	known  map[uint64]*local // known has the states by the hashes of their encodings.
	frames [][]byte          // frames has the frames between forwarders.
	number map[string]int    // number has the numbers of frames by their encodings.
	code   *encoder
	refers map[action.Conn]bool // refers has the connections to which the job that was encoded last refers.
	// plant, if not nil, is called after each operation that is performed, and plants a fault.
	plant func(z *forwarder)
}

// seat is the place of a process in the job.
type seat struct {
	cluster int
	rank    uint32
	zips    []int // zips has the forwarders that the process joins.
}

// local is a state of a forwarder.
type local struct {
	*model
	id int
	// live is a forwarder in this state. Only one state in some has one, to save memory: the others
	// are reached from the state from by the operation by.
	live   *forwarder
	from   *local
	by     operation
	depth  int   // depth is the number of operations from the first state to this one.
	job    bool  // job says that there is a job.
	state  State // state is that of the job.
	ends   []seen
	timers []action.Timer // timers has the timers that events of a world may follow from.
	dials  []bridge.Dial  // dials has the first dial, if any.
	steps  []*step        // steps has the operations that were performed in this state.
	// unsettled says that opSettle is due.
	unsettled bool
}

// seen is a connection as a world sees it.
type seen struct {
	name  int
	role  role
	ended bool
	deaf  bool // deaf says that its job ignores what happens to it.
}

// step is an operation in a state, with its results.
type step struct {
	by    operation
	to    *local
	out   []effect
	wrong []string
}

const modelPatience = 2000

func newModel(kind int) *model {
	a := &arrangements[kind]
	m := &model{kind: kind, zips: max(1, len(a.zippers)), known: map[uint64]*local{}, number: map[string]int{}, code: &encoder{}}
	if len(a.zippers) == 0 && a.rails > 1 {
		m.zips = 2
	}
	for c, cl := range a.layout {
		for r := range cl.Size {
			s := seat{cluster: c, rank: r}
			for z := range m.zips {
				if len(a.zippers) == 0 || slices.Contains(a.zippers[z], uint16(c)) {
					s.zips = append(s.zips, z)
				}
			}
			m.places = append(m.places, s)
		}
	}
	for f := range m.zips {
		m.stateOf(m.forwarder(f), nil, operation{})
	}
	return m
}

// forwarder returns a forwarder without a job.
func (m *model) forwarder(f int) *forwarder {
	return &forwarder{model: m, index: f, conns: map[int]action.Conn{}}
}

// join returns the Join of a rank at a forwarder.
func (m *model) join(rank, f int) *wire.Join {
	if len(arrangements[m.kind].zippers) == 0 {
		f = 0
	}
	return joinOf(m.kind, m.places[rank].cluster, m.places[rank].rank, uint16(f), modelPatience)
}

// firstJoin returns the Join that a forwarder shows to another one.
func (m *model) firstJoin(f int) *wire.Join {
	return m.join(slices.IndexFunc(m.places, func(s seat) bool { return slices.Contains(s.zips, f) }), f)
}

// frame returns the number of a frame. Frames that differ only in fields that their receivers
// ignore have the same number.
func (m *model) frame(b []byte) int {
	m.code.out = m.code.out[:0]
	m.code.frame(b)
	n, ok := m.number[string(m.code.out)]
	if !ok {
		n = len(m.frames)
		m.number[string(m.code.out)], m.frames = n, append(m.frames, b)
	}
	return n
}

// kept is the number of operations from one state whose forwarder is kept to the next. A forwarder
// takes some 15 KB.
const kept = 8

// stateOf returns the state of a forwarder, which was reached from another one by an operation.
func (m *model) stateOf(z *forwarder, from *local, by operation) *local {
	key := maphash.Bytes(seed, m.encode(z))
	if l := m.known[key]; l != nil {
		return l
	}
	l := &local{model: m, id: len(m.states), from: from, by: by, unsettled: z.unsettled()}
	if from != nil {
		l.depth = from.depth + 1
	}
	if l.depth%kept == 0 {
		l.live = z
	}
	m.known[key], m.states = l, append(m.states, l)
	if z.shell == nil {
		return l
	}
	l.job, l.state = true, z.job.State()
	for n, c := range z.conns {
		if x := z.shell.ends[c]; x != nil {
			// the job has no use for a connection that it has closed and does not refer to any more
			forgotten := x.ended && x.role != running && !m.refers[c]
			l.ends = append(l.ends, seen{n, x.role, x.ended, x.role == leaving && !x.in || l.state == Ended || forgotten})
		}
	}
	for t := range z.timers {
		if t.Kind != action.Notice && t.Kind != action.Measure {
			l.timers = append(l.timers, t)
		}
	}
	slices.SortFunc(l.timers, func(a, b action.Timer) int { return 100*(int(a.Kind)-int(b.Kind)) + a.Of - b.Of })
	l.dials = slices.Clone(z.dials[:min(1, len(z.dials))])
	z.out, z.job.out, z.sent, z.finished = nil, nil, nil, nil
	return l
}

// end returns a connection of the job by its name, or nil if the job does not know it.
func (l *local) end(name int) *seen {
	for i := range l.ends {
		if l.ends[i].name == name {
			return &l.ends[i]
		}
	}
	return nil
}

// forwarder returns a forwarder in this state, which the caller may change.
func (l *local) forwarder() *forwarder {
	if l.live != nil {
		return l.live.clone()
	}
	z := l.from.forwarder()
	z.do(l.by)
	return z
}

// step performs an operation, unless that was done before.
func (l *local) step(o operation) *step {
	for _, s := range l.steps {
		if s.by == o {
			return s
		}
	}
	z := l.forwarder()
	z.do(o)
	s := &step{by: o, out: z.out}
	if z.shell != nil {
		s.wrong = z.faults
	}
	s.to = l.stateOf(z, l, o)
	l.steps = append(l.steps, s)
	return s
}
