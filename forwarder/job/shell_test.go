package job

import (
	"fmt"
	"net/netip"
	"slices"
	"time"

	"github.com/leidenzipper/zipper/forwarder/action"
	"github.com/leidenzipper/zipper/forwarder/bridge"
	"github.com/leidenzipper/zipper/handshake"
	"github.com/leidenzipper/zipper/internal/wire"
)

// role is the role of a connection in the shell of a test, as in the forwarder.
type role uint8

const (
	stranger role = iota
	waiting
	introducing
	bridging
	running
	leaving
)

// end is a connection as the shell sees it.
type end struct {
	role     role
	rank     int  // rank is -1 for another forwarder.
	zipper   int  // zipper is -1 for a rank.
	in       bool // in says that it has belonged to the job.
	left     bool
	finished bool            // finished says that a last frame was sent.
	ended    bool            // ended says that it is to be closed.
	code     wire.RefuseCode // code is the code with which the connection was refused.
}

// shell carries out the actions of one job as the forwarder does, and checks that each is allowed.
type shell struct {
	job        *Job
	now        time.Time
	ends       map[action.Conn]*end
	timers     map[action.Timer]bool
	table      map[uint32]action.Conn
	asked      []Way                   // asked has the ways that the kernel is asked to open.
	open       map[netip.AddrPort]bool // open has the ways that are open, by the address of the door.
	closing    bool                    // closing says that the kernel closes the last ways.
	dials      []bridge.Dial
	booked     int64
	over       int
	incomplete int
	sent       func(c action.Conn, frame []byte) // sent is called for each frame, unless nil.
	// finished is called when a connection is to be closed, unless nil.
	finished func(c action.Conn)
	faults   []string
	dead     []Death // dead has the lost clusters before the present event.
}

func newShell(now time.Time, cfg Config, first *wire.Join) (*shell, *handshake.Refused) {
	j, actions, refused := New(now, cfg, first)
	if refused != nil {
		return nil, refused
	}
	s := &shell{job: j, now: now, ends: map[action.Conn]*end{}, timers: map[action.Timer]bool{},
		table: map[uint32]action.Conn{}, open: map[netip.AddrPort]bool{}}
	s.carryOut(actions)
	return s, nil
}

// fault records a forbidden action of the job.
func (s *shell) fault(format string, args ...any) {
	s.faults = append(s.faults, fmt.Sprintf(format, args...))
}

// handle applies an event to the job.
func (s *shell) handle(e Event) {
	was := s.job.State()
	actions := s.job.Handle(s.now, e)
	s.carryOut(actions)
	if was == Ended {
		for _, a := range actions {
			switch a.(type) {
			case Refuse, Free, CloseWays, action.End, action.Disarm:
			default:
				s.fault("a job that has ended asks for %T after %T", a, e)
			}
		}
	}
	s.check(e)
	s.checkDeaths(e)
}

// checkDeaths checks after each event that a lost cluster stays lost, and that no rank of it has a
// route, a place or a link.
func (s *shell) checkDeaths(e Event) {
	j := s.job
	if len(j.dead) < len(s.dead) || !slices.Equal(j.dead[:len(s.dead)], s.dead) {
		s.fault("after %T: the lost clusters were %v, and are %v", e, s.dead, j.dead)
	}
	s.dead = slices.Clone(j.dead)
	if len(j.dead) > 0 && !j.outlives() {
		s.fault("after %T: a job that ends without a cluster has lost %v", e, j.dead)
	}
	for i := range j.dead {
		if j.death(j.dead[i].Cluster) != &j.dead[i] {
			s.fault("after %T: cluster %d is lost twice", e, j.dead[i].Cluster)
		}
	}
	for v := range s.table {
		if !j.alive(v) {
			s.fault("after %T: rank %d of a lost cluster has a route", e, v)
		}
	}
	for v := range j.losses.waits {
		if !j.alive(v) {
			s.fault("after %T: rank %d of a lost cluster is waited for", e, v)
		}
	}
	for c, x := range s.ends {
		if x.rank >= 0 && x.role == running && !x.ended && !x.left && !j.alive(uint32(x.rank)) && j.ranks.here(uint32(x.rank)) {
			s.fault("after %T: rank %d of a lost cluster has connection %d", e, x.rank, c)
		}
	}
	s.checkStaying(e)
}

// checkStaying checks, in a job that outlives clusters, that the number of ranks here includes all
// that have a link or may open one again.
func (s *shell) checkStaying(e Event) {
	j := s.job
	if j.State() != Running || !j.outlives() {
		return
	}
	n := 0
	for v, c := range j.ranks.routes {
		if _, waits := j.losses.waits[uint32(v)]; j.ranks.here(uint32(v)) && (c != 0 || waits) {
			n++
		}
	}
	if n != j.ranks.remaining {
		s.fault("after %T: %d ranks stay here, the job counts %d", e, n, j.ranks.remaining)
	}
}

// check checks the invariants after each event.
func (s *shell) check(e Event) {
	live := 0
	for c, x := range s.ends {
		if x.role == running {
			live++
		}
		if s.job.ranks.members[c] != nil != (x.role == running) {
			s.fault("after %T: connection %d is %d, and a member: %v", e, c, x.role, s.job.ranks.members[c] != nil)
		}
	}
	if live != s.job.ranks.live {
		s.fault("after %T: %d connections run, the job counts %d", e, live, s.job.ranks.live)
	}
	for v, c := range s.table {
		if x := s.ends[c]; x == nil || x.role != running {
			s.fault("after %T: the route to rank %d is over connection %d, which does not run", e, v, c)
		}
		if s.job.state == Running && s.job.ranks.routes[v] != c {
			s.fault("after %T: the route to rank %d is %d, the job has %d", e, v, c, s.job.ranks.routes[v])
		}
	}
	if n := len(s.open) + len(s.asked); n > maxDoors {
		s.fault("after %T: %d doors", e, n)
	}
	if s.job.State() == Ended {
		if len(s.open) > 0 || s.asked != nil {
			s.fault("after %T: the job has ended, ways %v are open, and the kernel opens %v", e, s.open, s.asked)
		}
		if len(s.timers) > 0 {
			s.fault("after %T: the job has ended with timers %v", e, s.timers)
		}
		if s.booked != 0 {
			s.fault("after %T: the job has ended and keeps %d bytes", e, s.booked)
		}
		if len(s.table) > 0 {
			s.fault("after %T: the job has ended with routes %v", e, s.table)
		}
		if s.over+s.incomplete != 1 {
			s.fault("after %T: the job has ended %d times", e, s.over+s.incomplete)
		}
		if live > 0 {
			s.fault("after %T: the job has ended with %d connections", e, live)
		}
	}
}

func (s *shell) carryOut(actions []action.Action) {
	for _, a := range actions {
		switch a := a.(type) {
		case action.Arm:
			if a.After < 0 {
				s.fault("timer %v after %v", a.Timer, a.After)
			}
			s.timers[a.Timer] = true
		case action.Disarm:
			delete(s.timers, a.Timer)
		case action.Log:
		case Start:
			s.start(&a)
		case Route:
			if x := s.ends[a.Conn]; x == nil {
				s.fault("rank %d is to be reached over connection %d, which is not there", a.Rank, a.Conn)
			}
			s.table[a.Rank] = a.Conn
		case Unroute:
			if s.table[a.Rank] == 0 {
				s.fault("rank %d is taken out of the table, but has no route", a.Rank)
			}
			delete(s.table, a.Rank)
		case Free:
			s.booked -= a.Bytes
		case OpenWays:
			if s.asked != nil || len(a.Ways) == 0 {
				s.fault("the kernel is asked for %v, while it opens %v", a.Ways, s.asked)
			}
			s.asked = a.Ways
		case CloseWays:
			for _, at := range a.At {
				if !s.open[at] {
					s.fault("the way at %v is closed, and not open", at)
				}
				delete(s.open, at)
			}
			s.closing = s.closing || a.Last
		case Incomplete:
			s.incomplete++
		case Over:
			s.over++
		case Internal:
			s.fault("internal error: %v", a.Err)
		case bridge.Dial:
			if slices.ContainsFunc(s.dials, func(d bridge.Dial) bool { return d.Zipper == a.Zipper && d.Number == a.Number }) {
				s.fault("connection %d to forwarder %d is dialled twice at once", a.Number, a.Zipper)
			}
			s.dials = append(s.dials, a)
		default:
			s.carryOutOn(a)
		}
	}
}

// carryOutOn is carryOut for connections.
func (s *shell) carryOutOn(a action.Action) {
	switch a := a.(type) {
	case action.Send:
		x := s.on(a.Conn, a)
		if x.left || x.finished && !x.ended {
			s.fault("a frame is sent over connection %d after the last one", a.Conn)
		}
		if x.rank >= 0 && slices.ContainsFunc(s.dead, func(d Death) bool { return d.Cluster == s.job.ranks.clusterOf[x.rank] }) {
			s.fault("a frame is sent to rank %d of a lost cluster", x.rank)
		}
		s.send(a.Conn, a.Frame)
	case action.Finish:
		x := s.on(a.Conn, a)
		if x.finished {
			s.fault("connection %d is finished twice", a.Conn)
		}
		x.finished = true
		s.send(a.Conn, a.Frame)
	case action.Close:
		s.end(a.Conn, a)
	case action.Abort:
		s.on(a.Conn, a).finished = true
		s.send(a.Conn, a.Frame)
		s.end(a.Conn, a)
	case action.End:
		s.end(a.Conn, a)
	case Refuse:
		x := s.on(a.Conn, a)
		if x.role != stranger && x.role != waiting {
			s.fault("connection %d is refused, and %d", a.Conn, x.role)
		}
		x.role, x.code = leaving, a.Why.Code
		s.end(a.Conn, a)
	case Place:
		s.move(a.Conn, a, stranger, waiting)
	case Tell:
		s.move(a.Conn, a, waiting, waiting)
	case Enter:
		s.on(a.Conn, a).rank = int(a.Rank)
		s.move(a.Conn, a, stranger, stranger)
	case Run:
		x := s.on(a.Conn, a)
		if x.role != waiting && x.role != stranger || x.rank != int(a.Rank) {
			s.fault("connection %d runs as rank %d, is rank %d and %d", a.Conn, a.Rank, x.rank, x.role)
		}
		x.role = running
	case Widen, bridge.Spread, bridge.Far:
	case Bridged:
		s.on(a.Conn, a).zipper = a.Zipper
		s.move(a.Conn, a, stranger, bridging)
	case bridge.Introduce:
		s.move(a.Conn, a, introducing, introducing)
	case bridge.Use:
		s.move(a.Conn, a, bridging, running)
	default:
		s.fault("unknown action %T", a)
	}
}

func (s *shell) start(a *Start) {
	for _, e := range a.Entries {
		s.move(e.Conn, a, waiting, waiting)
		s.ends[e.Conn].rank = int(e.Rank)
	}
}

// on returns the connection of an action.
func (s *shell) on(c action.Conn, a any) *end {
	if x := s.ends[c]; x != nil {
		return x
	}
	s.fault("%T is for connection %d, which is not there", a, c)
	return &end{}
}

func (s *shell) move(c action.Conn, a any, from, to role) {
	x := s.on(c, a)
	if x.role != from {
		s.fault("%T finds connection %d as %d, not %d", a, c, x.role, from)
	}
	x.role, x.in = to, true
}

func (s *shell) end(c action.Conn, a any) {
	s.on(c, a).ended = true
	if s.finished != nil {
		s.finished(c)
	}
}

func (s *shell) send(c action.Conn, frame []byte) {
	if s.sent != nil {
		s.sent(c, frame)
	}
}

// lose reports the end of a connection to the job.
func (s *shell) lose(c action.Conn, cause error, silent time.Duration) {
	x := s.ends[c]
	delete(s.ends, c)
	if x == nil || x.role == stranger || x.role == leaving && !x.in {
		return // it never belonged to the job
	}
	if x.role == running {
		// its routes may be used until the job knows of its end
		s.ends[c] = x
		s.job.now = s.now
		actions := s.job.Handle(s.now, Lost{Conn: c, Cause: cause, Silent: silent})
		s.carryOut(actions)
		delete(s.ends, c)
		s.check(Lost{})
		return
	}
	s.handle(Lost{Conn: c, Cause: cause, Silent: silent})
}

// expire reports the end of a timer to the job.
func (s *shell) expire(t action.Timer) {
	delete(s.timers, t)
	s.handle(Expired{Timer: t})
}
