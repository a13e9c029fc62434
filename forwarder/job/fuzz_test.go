package job

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/leidenzipper/zipper/forwarder/action"
	"github.com/leidenzipper/zipper/forwarder/bridge"
	"github.com/leidenzipper/zipper/forwarder/trunk"
	"github.com/leidenzipper/zipper/handshake"
	"github.com/leidenzipper/zipper/internal/wire"
)

// arrangements has the jobs to which random events are applied.
var arrangements = []struct {
	name     string
	layout   []wire.Cluster
	nets     []string
	zippers  [][]uint16 // zippers has the networks of each forwarder; nil for one hop.
	rails    uint16
	ways     bool
	outlives string // outlives has the settings of a job that outlives clusters; empty for a job that ends.
}{
	{"one forwarder", abb, nil, nil, 1, false, ""},
	{"kernel", abb, nil, nil, 1, true, ""},
	{"side by side", abb, nil, nil, 2, true, ""},
	{"row of two", abb, []string{"w"}, [][]uint16{{0, 2}, {1, 2}}, 1, false, ""},
	{"row of three", ab, []string{"u", "w"}, [][]uint16{{0, 2}, {2, 3}, {3, 1}}, 1, false, ""},
	{"two rows", abb, []string{"w"}, [][]uint16{{0, 2}, {1, 2}}, 2, false, ""},
	{"short row", ab, []string{"w"}, [][]uint16{{0, 2}, {1, 2}}, 1, false, ""},
	{"one forwarder, outlives clusters", abb, nil, nil, 1, false, outlives},
	{"side by side, outlives clusters", abb, nil, nil, 2, false, outlives},
	{"short row, outlives clusters", ab, []string{"w"}, [][]uint16{{0, 2}, {1, 2}}, 1, false, outlives},
	{"row of three, outlives clusters", abc, []string{"u", "w"}, [][]uint16{{0, 3}, {1, 3, 4}, {4, 2}}, 1, false, outlives},
	{"chain, outlives clusters", abc, nil, [][]uint16{{0, 1}, {1, 2}}, 1, false, outlives},
	{"two rows, outlives clusters", abb, []string{"w"}, [][]uint16{{0, 2}, {1, 2}}, 2, false, outlives},
	{"short row, both sides go on", ab, []string{"w"}, [][]uint16{{0, 2}, {1, 2}}, 1, false,
		outlives + " " + handshake.SettingQuorum + "=both"},
	{"three clusters, outlives clusters", abc, nil, nil, 1, false, outlives},
}

// outlives is the setting of a job that outlives clusters.
const outlives = handshake.SettingOnLoss + "=continue"

// These are layouts: clusters of one rank each, and a second rank in b.
var (
	ab  = []wire.Cluster{{Name: "a", Size: 1}, {Name: "b", Size: 1}}
	abb = []wire.Cluster{{Name: "a", Size: 1}, {Name: "b", Size: 2}}
	abc = append(ab[:2:2], wire.Cluster{Name: "c", Size: 1})
)

// joinOf returns the Join of a rank. here is its forwarder's index.
func joinOf(kind int, cluster int, rank uint32, here uint16, patience uint32) *wire.Join {
	a := &arrangements[kind]
	j := &wire.Join{Version: wire.Version, TimeoutMS: 20000, Patience: patience, Job: "j", Cluster: a.layout[cluster].Name,
		Rank: rank, Layout: a.layout, Networks: a.nets, Rails: a.rails, Here: here, Host: "host-" + a.layout[cluster].Name,
		Instance: uint64(cluster)<<32 | uint64(rank) + 1, Library: "lib", TagUB: 1 << 20, Settings: a.outlives}
	for k, on := range a.zippers {
		var z wire.Zipper
		for _, n := range on {
			z.Ports = append(z.Ports, wire.Port{Network: n, Address: "z" + string(rune('0'+k)) + "n" + string(rune('0'+n))})
		}
		j.Zippers = append(j.Zippers, z)
	}
	return j
}

// walk applies random events from source to one job, until the job has ended or a number of events
// is reached. It returns the number of events.
func walk(t *testing.T, r *rand.Rand, most int) int {
	t.Helper()
	kind := r.IntN(len(arrangements))
	here := uint16(0)
	if n := len(arrangements[kind].zippers); n > 0 {
		here = uint16(r.IntN(n))
	}
	patience := uint32(r.IntN(2) * 2000)
	w := &walker{r: r, kind: kind, here: here, patience: patience, calm: 1 << r.IntN(8)}
	first := w.join()
	s, refused := newShell(time.Unix(1e9, 0), Config{Here: int(here), Timeout: 20 * time.Second, Notice: 5 * time.Second,
		Ways: arrangements[kind].ways, Classic: r.IntN(8) == 0, Trunk: r.IntN(3)}, first)
	if refused != nil {
		t.Fatalf("%s: %v", arrangements[kind].name, refused)
	}
	w.shell = s
	n := 0
	for after := 0; n < most && after < 20; n++ {
		w.step()
		if len(s.faults) > 0 {
			t.Fatalf("%s, forwarder %d: %v%s", arrangements[kind].name, here, s.faults, w.lastEvents())
		}
		if s.job.State() == Ended {
			after++
		}
	}
	return n
}

// walker makes random events.
type walker struct {
	*shell
	port     uint16 // the port of the last door
	r        *rand.Rand
	kind     int
	here     uint16
	patience uint32
	calm     int // calm is the number of disturbing events out of which one is applied.
	next     action.Conn
	log      []Event
}

func (w *walker) join() *wire.Join { return w.joinFrom(-1, w.here) }

// joinFrom returns the Join of a rank that is reached over a forwarder, or that has its link here
// (-1). Now and then it takes any rank.
func (w *walker) joinFrom(via int, here uint16) *wire.Join {
	layout := arrangements[w.kind].layout
	var ranks [][2]int
	for c, cl := range layout {
		for rank := range int(cl.Size) {
			fits := w.shell == nil || !w.job.links.several() || w.job.links.next(int(w.here), c) == via
			if fits || w.r.IntN(4*w.calm) == 0 {
				ranks = append(ranks, [2]int{c, rank})
			}
		}
	}
	if len(ranks) == 0 {
		return nil
	}
	one := ranks[w.r.IntN(len(ranks))]
	return joinOf(w.kind, one[0], uint32(one[1]), here, w.patience)
}

// fresh returns a new connection.
func (w *walker) fresh(r role) action.Conn {
	w.next++
	w.ends[w.next] = &end{role: r, rank: -1, zipper: -1}
	return w.next
}

// some returns a random connection with one of the roles, or 0 if none has one.
func (w *walker) some(roles ...role) action.Conn {
	var list []action.Conn
	for c, x := range w.ends {
		if slices.Contains(roles, x.role) {
			list = append(list, c)
		}
	}
	if len(list) == 0 {
		return 0
	}
	slices.Sort(list)
	return list[w.r.IntN(len(list))]
}

// lastEvents returns the last events of the walk.
func (w *walker) lastEvents() (text string) {
	for _, e := range w.log[max(0, len(w.log)-30):] {
		text += fmt.Sprintf("\n%T %.300s", e, fmt.Sprintf("%+v", e))
	}
	return text
}

func (w *walker) give(e Event) {
	if w.log = append(w.log, e); len(w.log) > 200 {
		w.log = slices.Delete(w.log, 0, 100)
	}
	w.now = w.now.Add(time.Duration(w.r.IntN(50)) * time.Millisecond)
	w.handle(e)
}

// drop closes connections that were refused, after some time.
func (w *walker) drop() {
	if c := w.some(leaving, stranger); c != 0 && w.r.IntN(2) == 0 {
		w.lose(c, nil, 0)
	}
}

func (w *walker) step() {
	defer w.drop()
	n := w.r.IntN(20)
	if n >= 4 && n < 11 && n != 6 && w.r.IntN(w.calm) > 0 {
		n = []int{0, 11, 12, 14}[w.r.IntN(4)]
	}
	switch n {
	case 0, 1, 2, 3:
		join := w.join()
		if join == nil {
			return
		}
		if w.r.IntN(10*w.calm) == 0 {
			join.Instance++ // another process
		}
		if w.r.IntN(20*w.calm) == 0 {
			join.TimeoutMS = 0
		}
		room := w.r.IntN(30*w.calm) > 0
		if room {
			w.booked += 100
		}
		w.give(Joined{Conn: w.fresh(stranger), Link: "link", Join: join, Timeout: 20 * time.Second, Bytes: 100, Room: room,
			Inside: netip.AddrPortFrom(netip.MustParseAddr("10.0.0.1"), 5000+uint16(join.Rank)),
			Home:   netip.MustParseAddr("10.0.0.2"), From: netip.MustParseAddr("10.0.0.1")})
	case 4, 5:
		if c := w.some(running, running, waiting, bridging, introducing); c != 0 {
			w.log = append(w.log, Lost{Conn: c})
			w.lose(c, []error{nil, errors.New("reset")}[w.r.IntN(2)], time.Duration(w.r.IntN(2))*time.Duration(w.r.IntN(6000))*time.Millisecond)
		}
	case 6:
		if c := w.some(running); c != 0 && w.ends[c].zipper < 0 && !w.ends[c].left && w.r.IntN(4) == 0 {
			w.ends[c].left = true
			w.give(Departed{Conn: c})
		}
	case 7:
		w.timer()
	case 8:
		w.half()
	case 9:
		if c := w.some(running); c != 0 {
			x := w.ends[c]
			x.ended = x.ended || x.zipper < 0 // package relay ends a rank's connection
			w.give(Damaged{Conn: c, Reason: "nonsense"})
		}
	case 10:
		if c := w.some(running); c != 0 && w.r.IntN(4) == 0 {
			w.give(Aborted{Conn: c, Frame: wire.Abort{Code: 3, Rank: uint32(w.r.IntN(4)), Reason: "why", By: wire.Nobody}})
		}
	case 11:
		w.kernel()
	case 12, 13:
		if c := w.some(running); c != 0 {
			w.give(Asked{Conn: c, Rank: uint32(w.r.IntN(wire.Ranks(arrangements[w.kind].layout) + 1))})
		}
	default:
		w.crossing()
	}
}

// timer lets a timer expire.
func (w *walker) timer() {
	var list []action.Timer
	for t := range w.timers {
		list = append(list, t)
	}
	if len(list) == 0 {
		return
	}
	slices.SortFunc(list, func(a, b action.Timer) int { return int(a.Kind)*100 + a.Of - int(b.Kind)*100 - b.Of })
	t := list[w.r.IntN(len(list))]
	w.log = append(w.log, Expired{Timer: t})
	w.expire(t)
}

func (w *walker) half() {
	switch w.r.IntN(12) {
	case 0:
		layout := arrangements[w.kind].layout
		w.give(HalfEnded{Cluster: layout[w.r.IntN(len(layout))].Name, Reason: "it ended", Code: 2})
	case 1, 2:
		w.give(HalfSuspended{Cluster: "b", Reason: "suspended"})
	case 3, 4:
		w.give(HalfResumed{Cluster: "b"})
	case 5:
		w.give(ClusterEnded{Cluster: "a"})
	case 6:
		w.give(Another{})
	case 7:
		w.give(Turned{Join: joinOf(w.kind, 0, 0, w.here, w.patience), Link: "l",
			Why: handshake.Refusal(wire.RefuseTicket, "no ticket")})
	case 8:
		if c := w.some(waiting); c != 0 {
			w.ends[c].role = leaving
			w.give(Withdrawn{Conn: c})
		}
	case 9:
		if w.r.IntN(4) == 0 {
			w.give(Release{Reason: "released"})
		}
	case 10:
		if w.r.IntN(4) == 0 {
			w.give(Stop{Reason: "stopped"})
		}
	}
}

// kernel answers a request to the kernel.
func (w *walker) kernel() {
	if ways := w.asked; ways != nil {
		w.asked = nil
		if w.r.IntN(3) == 0 {
			w.give(Opened{Err: errors.New("no")})
			return
		}
		var at []netip.AddrPort
		for range ways {
			w.port++
			at = append(at, netip.AddrPortFrom(netip.MustParseAddr("10.0.0.2"), w.port))
			w.open[at[len(at)-1]] = true
		}
		opened := Opened{At: at}
		if len(ways) > 1 && w.r.IntN(3) == 0 {
			delete(w.open, at[0])
			at[0], opened.Err = netip.AddrPort{}, errors.New("not the first one")
		}
		w.give(opened)
		return
	}
	if w.closing {
		w.closing = false
		w.give(Closed{})
	}
}

// crossing performs a random step between forwarders.
func (w *walker) crossing() {
	a := &arrangements[w.kind]
	if len(a.zippers) == 0 {
		return
	}
	other := w.r.IntN(len(a.zippers))
	switch w.r.IntN(8) {
	case 7:
		if c := w.some(running); c != 0 && w.ends[c].zipper >= 0 && a.outlives != "" && w.r.IntN(w.calm) == 0 {
			w.give(ReportedLoss{w.ends[c].zipper, wire.Lost{Cluster: uint16(w.r.IntN(len(a.layout))), Reason: "why"}})
		}
	case 0:
		if len(w.dials) == 0 {
			return
		}
		d := w.dials[0]
		w.dials = w.dials[1:]
		if w.r.IntN(3*w.calm) == 0 && !d.Gathers {
			w.give(Crossed{d.Zipper, bridge.NotDialled{Number: d.Number, Err: errors.New("no answer")}})
			return
		}
		c := w.fresh(introducing)
		w.ends[c].zipper = d.Zipper
		w.give(Crossed{d.Zipper, bridge.Dialled{Conn: c, Number: d.Number}})
	case 1:
		if c := w.some(introducing); c != 0 {
			x := w.ends[c]
			if w.r.IntN(4*w.calm) == 0 {
				x.role = leaving
				w.give(Crossed{x.zipper, bridge.Refused{Conn: c, Code: wire.RefuseCode(w.r.IntN(12)), Reason: "no"}})
				return
			}
			x.role = bridging
			w.give(Crossed{x.zipper, bridge.Introduced{Conn: c, Link: w.link()}})
		}
	case 2:
		join := joinOf(w.kind, w.r.IntN(len(a.layout)), 0, uint16(other), w.patience)
		w.give(Offered{Conn: w.fresh(stranger), Join: join, Here: int(w.here), Number: max(0, w.r.IntN(6)-3), Link: w.link()})
	case 3, 4:
		w.hear()
	case 5:
		if c := w.some(running); c != 0 && w.ends[c].zipper >= 0 {
			x := w.ends[c]
			s := wire.RailState{Rank: uint32(w.r.IntN(3)), Up: w.r.IntN(2) == 0, Departed: w.r.IntN(4) == 0, Cut: w.r.IntN(2) == 0}
			if w.job.ranks.via[min(int(s.Rank), len(w.job.ranks.via)-1)] == x.zipper && int(s.Rank) < len(w.job.ranks.via) {
				w.give(Reported{x.zipper, s})
			}
		}
	case 6:
		if c := w.some(running); c != 0 && w.ends[c].zipper >= 0 && w.r.IntN(w.calm) == 0 {
			w.give(Crossed{w.ends[c].zipper, bridge.Bye{Conn: c}})
		}
	}
}

// hear applies a frame over a connection that is not in use yet.
func (w *walker) hear() {
	c := w.some(bridging)
	if c == 0 {
		return
	}
	x := w.ends[c]
	e := ForwarderFrame{Conn: c, Zipper: x.zipper, Link: w.link()}
	switch w.r.IntN(8) {
	case 0, 1:
		join := w.joinFrom(x.zipper, uint16(x.zipper))
		if join == nil || w.job.gather.In(int(w.job.rankOf(join))) && w.r.IntN(4*w.calm) > 0 {
			return
		}
		e.Type, e.Body, e.Room = wire.TypeJoin, join.Append(nil), true
		w.booked += int64(len(e.Body))
	case 2, 3:
		e.Type, e.Body = wire.TypeReady, (&wire.Ready{Zipper: uint32(w.r.IntN(len(arrangements[w.kind].zippers)))}).Append(nil)
	case 4, 5:
		e.Type = wire.TypePong
	case 6:
		e.Type, e.Body = wire.TypeNotice, (&wire.Notice{Text: "no link"}).Append(nil)
	case 7:
		switch w.r.IntN(8 * w.calm) {
		case 0:
			e.Type, e.Body = wire.TypeRefuse, (&wire.Refuse{Code: wire.RefuseTaken, Reason: "no"}).Append(nil)
		case 1:
			e.Type, e.Body = wire.TypeJoin, []byte{1}
		case 2:
			w.give(Spoiled{Conn: c, Zipper: x.zipper, Reason: "nonsense"})
			return
		case 3, 4:
			e.Type, e.Body = wire.TypeLost, (&wire.Lost{Cluster: uint16(w.r.IntN(3)), Epoch: 1, Reason: "why"}).Append(nil)
		default:
			e.Type = wire.TypePing
		}
	}
	w.give(e)
}

func (w *walker) link() (l trunk.Link) {
	if l.Known = w.r.IntN(2) == 0; l.Known {
		l.RoundTrip = time.Duration(w.r.IntN(40)) * time.Millisecond
	}
	return l
}

// TestHandleRandom applies random events to jobs, 10^5 in all and 10^7 in the long form, and checks
// the invariants after each.
func TestHandleRandom(t *testing.T) {
	total := 100_000
	if os.Getenv("ZIPPER_LONG") != "" {
		total = 10_000_000
	}
	jobs := 0
	for n := 0; n < total; jobs++ {
		n += walk(t, rand.New(rand.NewPCG(1, uint64(jobs))), 400)
	}
	t.Logf("%d jobs", jobs)
}

// FuzzHandle is TestHandleRandom with events of the fuzzer's choice.
func FuzzHandle(f *testing.F) {
	for seed := range uint64(8) {
		f.Add(seed, seed)
	}
	f.Fuzz(func(t *testing.T, a, b uint64) { walk(t, rand.New(rand.NewPCG(a, b)), 400) })
}
