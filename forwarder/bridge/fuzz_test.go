package bridge

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/leidenzipper/zipper/forwarder/action"
	"github.com/leidenzipper/zipper/forwarder/trunk"
	"github.com/leidenzipper/zipper/internal/wire"
)

// link is a connection as the forwarder sees it.
type link struct {
	dialled    bool
	introduced bool // introduced says that the bridge has the connection.
	used       bool
	finished   bool
	ended      bool // ended says that the bridge has requested its end.
}

// walker applies random events to a bridge, and checks the actions that it requests.
type walker struct {
	*Bridge
	r      *rand.Rand
	clock  time.Time
	calm   int // calm is the number of disturbing events out of which one is applied.
	next   action.Conn
	links  map[action.Conn]*link
	timers map[action.Kind]bool
	dials  []Dial
	ends   bool // ends says that the job ends, and the bridge with it.
	log    []string
	faults []string
}

func (w *walker) fault(format string, args ...any) {
	w.faults = append(w.faults, fmt.Sprintf(format, args...))
}

// on returns the connection of an action.
func (w *walker) on(c action.Conn, a any) *link {
	if l := w.links[c]; l != nil {
		return l
	}
	w.fault("%T is for connection %d, which is not there", a, c)
	return &link{}
}

func (w *walker) give(e Event) {
	w.log = append(w.log, fmt.Sprintf("%T%+v", e, e))
	w.clock = w.clock.Add(time.Duration(w.r.IntN(100)) * time.Millisecond)
	actions, err := w.Handle(w.clock, e)
	if err != nil {
		w.fault("%v", err)
	}
	for _, a := range actions {
		w.carryOut(a)
	}
	if w.ends {
		w.ends = false
		w.give(Stop{})
		return
	}
	w.check()
}

func (w *walker) carryOut(a action.Action) {
	switch a := a.(type) {
	case action.Arm:
		w.timers[a.Timer.Kind] = true
	case action.Disarm:
		delete(w.timers, a.Timer.Kind)
	case action.Send:
		if w.on(a.Conn, a).finished {
			w.fault("a frame is sent over connection %d after Bye", a.Conn)
		}
	case action.Finish:
		l := w.on(a.Conn, a)
		if l.finished || !l.used {
			w.fault("Bye over connection %d: used %v, finished %v", a.Conn, l.used, l.finished)
		}
		l.finished = true
	case action.Close, action.Log:
	case action.End:
		w.on(a.Conn, a).ended = true
	case Failed, GiveUp:
		w.ends = true
	case Dial:
		if w.state == Over || len(w.dials) > maxConnections {
			w.fault("dials in state %v, %d under way", w.state, len(w.dials))
		}
		if !a.Gathers && slices.ContainsFunc(w.dials, func(d Dial) bool { return d.Number == a.Number }) {
			w.fault("dials connection %d twice at once", a.Number)
		}
		w.dials = append(w.dials, a)
	case Introduce:
		w.on(a.Conn, a).dialled = true
	case Use:
		l := w.on(a.Conn, a)
		if l.used || !l.introduced {
			w.fault("connection %d is used: introduced %v, used %v", a.Conn, l.introduced, l.used)
		}
		l.used = true
	case Spread:
		for _, c := range append(slices.Clone(a.Over), a.First) {
			if !w.on(c, a).used {
				w.fault("connection %d shares, and is not used", c)
			}
		}
	}
}

// check checks the invariants after each event.
func (w *walker) check() {
	used := len(w.conns.inUse)
	switch w.state {
	case Absent:
		if used > 0 {
			w.fault("absent with %d connections", used)
		}
	case Gathering, Running:
		if used == 0 && !w.bye.sent {
			w.fault("%v without a connection", w.state)
		}
	case Cut:
		if used > 0 {
			w.fault("cut with %d connections", used)
		}
	case Over:
		if len(w.timers) > 0 {
			w.fault("over with timers %v", w.timers)
		}
	}
	if w.timers[action.Cut] && w.state != Cut {
		w.fault("waits for the end of a cut when %v", w.state)
	}
	numbers := map[int]bool{}
	for _, c := range w.conns.inUse {
		l := w.links[c.id]
		if l == nil {
			w.fault("connection %d is in use, and not there", c.id)
		} else if !l.ended && numbers[c.number] {
			w.fault("two connections with number %d are in use", c.number)
		} else if !l.ended {
			numbers[c.number] = true
		}
	}
}

func (w *walker) some(which func(l *link) bool) action.Conn {
	var list []action.Conn
	for c, l := range w.links {
		if which(l) {
			list = append(list, c)
		}
	}
	if len(list) == 0 {
		return 0
	}
	slices.Sort(list)
	return list[w.r.IntN(len(list))]
}

func (w *walker) path() (l trunk.Link) {
	if l.Known = w.r.IntN(2) == 0; l.Known {
		l.RoundTrip = time.Duration(w.r.IntN(40)) * time.Millisecond
	}
	l.Carried = w.r.IntN(8) == 0
	return l
}

// step applies one event that is possible now.
func (w *walker) step() {
	any := func(*link) bool { return true }
	coming := func(l *link) bool { return l.introduced && !l.used }
	switch w.r.IntN(12) {
	case 0:
		w.give(Reach{})
	case 1, 2:
		if len(w.dials) == 0 {
			return
		}
		d := w.dials[0]
		w.dials = w.dials[1:]
		if !d.Gathers && w.r.IntN(2*w.calm) == 0 {
			w.give(NotDialled{Number: d.Number, Err: errors.New("no answer")})
			return
		}
		w.next++
		w.links[w.next] = &link{}
		w.give(Dialled{Conn: w.next, Number: d.Number})
	case 3, 4:
		if c := w.some(func(l *link) bool { return l.dialled && !l.introduced }); c != 0 {
			if w.r.IntN(2*w.calm) == 0 {
				w.links[c].dialled = false
				w.give(Refused{Conn: c, Code: wire.RefuseCode(w.r.IntN(12)), Reason: "no"})
				return
			}
			w.links[c].introduced = true
			w.give(Introduced{Conn: c, Link: w.path()})
		}
	case 5:
		if w.Dials && w.state != Running && w.state != Cut || len(w.links) > 2*maxConnections {
			return
		}
		w.next++
		w.links[w.next] = &link{introduced: true}
		w.give(Offered{Conn: w.next, Number: w.r.IntN(4), Link: w.path()})
	case 6:
		if c := w.some(coming); c != 0 {
			w.give(Pong{Conn: c, Link: w.path()})
		}
	case 7:
		if c := w.some(coming); c != 0 && (w.state == Running || w.state == Cut) {
			w.give(Ready{Conn: c, Zipper: w.r.IntN(2), Link: w.path()})
		} else if w.state == Gathering && w.Tried() && w.r.IntN(4) == 0 {
			w.links[w.First()].used = true
			w.give(Begin{DialForPeer: w.r.IntN(2) == 0})
		}
	case 8:
		if c := w.some(any); c != 0 && w.r.IntN(w.calm) == 0 {
			w.give(Ended{Conn: c, Cause: []error{nil, errors.New("reset")}[w.r.IntN(2)],
				Silent: time.Duration(w.r.IntN(2)) * 700 * time.Millisecond})
			delete(w.links, c)
		}
	case 9:
		if c := w.some(func(l *link) bool { return l.used }); c != 0 && w.r.IntN(w.calm) == 0 {
			w.give(Bye{Conn: c})
		}
	case 10:
		if (w.state == Running || w.state == Cut) && w.r.IntN(4*w.calm) == 0 {
			w.give(Finish{})
		}
		if w.r.IntN(20*w.calm) == 0 {
			w.give(Stop{})
		}
	case 11:
		w.expire()
	}
}

// expire lets a timer expire, or applies an unexpected frame.
func (w *walker) expire() {
	var list []action.Kind
	for k := range w.timers {
		list = append(list, k)
	}
	if slices.Sort(list); len(list) > 0 {
		k := list[w.r.IntN(len(list))]
		if k == action.Large && w.r.IntN(w.calm) > 0 {
			return
		}
		delete(w.timers, k)
		links := map[action.Conn]trunk.Link{}
		for _, c := range w.conns.inUse {
			links[c.id] = w.path()
		}
		w.give(Expired{Timer: k, Links: links})
	}
	if c := w.some(func(l *link) bool { return l.introduced && !l.used }); c != 0 && w.state != Gathering && w.r.IntN(8*w.calm) == 0 {
		w.give(Unexpected{Conn: c, Type: wire.TypeData})
	}
}

// walk applies a number of random events to a bridge, and returns the number applied.
func walk(t *testing.T, r *rand.Rand, most int) int {
	t.Helper()
	survivesLoss := r.IntN(4) > 0
	w := &walker{r: r, clock: time.Unix(1e9, 0), calm: 1 << r.IntN(6), links: map[action.Conn]*link{},
		timers: map[action.Kind]bool{}, Bridge: New(Config{Job: "j", Zipper: 1, Address: "z", Dials: r.IntN(2) == 0,
			Fixed: r.IntN(5), Patience: time.Second, SurvivesLoss: survivesLoss, Resumes: survivesLoss && r.IntN(2) == 0})}
	for n := range most {
		w.step()
		if len(w.faults) > 0 {
			t.Fatalf("%v after\n%s", w.faults, w.log[max(0, len(w.log)-30):])
		}
		if w.state == Over && w.r.IntN(20) == 0 {
			return n
		}
	}
	return most
}

// TestHandleRandom applies random events to bridges, 10^5 in all and 10^7 in the long form, and
// checks the invariants after each.
func TestHandleRandom(t *testing.T) {
	total := 100_000
	if os.Getenv("ZIPPER_LONG") != "" {
		total = 10_000_000
	}
	for n, seed := 0, uint64(0); n < total; seed++ {
		n += max(1, walk(t, rand.New(rand.NewPCG(2, seed)), 300))
	}
}

// FuzzHandle is TestHandleRandom with events of the fuzzer's choice.
func FuzzHandle(f *testing.F) {
	for seed := range uint64(8) {
		f.Add(seed, seed)
	}
	f.Fuzz(func(t *testing.T, a, b uint64) { walk(t, rand.New(rand.NewPCG(a, b)), 300) })
}
