package job

import (
	"io"
	"strings"
	"testing"
	"time"

	"github.com/leidenzipper/zipper/forwarder/action"
	"github.com/leidenzipper/zipper/forwarder/trunk"
	"github.com/leidenzipper/zipper/internal/wire"
)

// patience is that of the jobs of these tests in ms, longer than ComesBack.
const patience = 10_000

// started returns a running job of two clusters, of one and of two ranks, at a forwarder of an
// arrangement, and the connections of the ranks here. In a row of two the other ranks come over
// connection 1.
func started(t *testing.T, kind int, here uint16) (*shell, map[uint32]action.Conn) {
	t.Helper()
	first := joinOf(kind, int(here), 0, here, patience)
	s, refused := newShell(time.Unix(1e9, 0), Config{Here: int(here), Timeout: time.Minute, Notice: time.Second, Trunk: 1}, first)
	if refused != nil {
		t.Fatal(refused)
	}
	next, conns := action.Conn(1), map[uint32]action.Conn{}
	for c, cl := range arrangements[kind].layout {
		if s.job.Facts().Hops && c != int(here) {
			continue
		}
		for rank := range cl.Size {
			next++
			join := joinOf(kind, c, rank, here, patience)
			s.ends[next] = &end{rank: -1, zipper: -1}
			conns[s.job.rankOf(join)] = next
			s.handle(Joined{Conn: next, Join: join, Timeout: time.Minute, Room: true})
		}
	}
	if s.job.Facts().Hops {
		other := 1 - here
		link(s, here, other)
		for c, cl := range arrangements[kind].layout {
			for rank := range cl.Size {
				if c != int(here) {
					hear(s, other, wire.TypeJoin, joinOf(kind, c, rank, other, patience))
				}
			}
		}
		hear(s, other, wire.TypePong, nil)
		hear(s, other, wire.TypeReady, &wire.Ready{Zipper: uint32(other)})
	}
	if s.job.State() != Running || len(s.faults) > 0 {
		t.Fatalf("the job is %v; %v", s.job.State(), s.faults)
	}
	return s, conns
}

// link gives the job a connection from another forwarder.
func link(s *shell, here, other uint16) {
	s.ends[1] = &end{rank: -1, zipper: int(other)}
	s.handle(Offered{Conn: 1, Join: joinOf(3, int(other), 0, other, patience), Here: int(here)})
}

// hear gives the job a frame over that connection.
func hear(s *shell, other uint16, t wire.Type, body wire.Body) {
	e := ForwarderFrame{Conn: 1, Zipper: int(other), Type: t, Link: trunk.Link{}}
	if body != nil {
		e.Body = body.Append(nil)
	}
	if e.Room = t == wire.TypeJoin; e.Room {
		s.booked += int64(len(e.Body))
	}
	s.handle(e)
}

// TestRepeatedByeCountsOnce checks that a second Bye over the same connection is not another
// departure.
func TestRepeatedByeCountsOnce(t *testing.T) {
	s, conns := started(t, 3, 1)
	before := s.job.ranks.remaining
	s.handle(Departed{Conn: conns[1]})
	s.handle(Departed{Conn: conns[1]})
	if got := s.job.ranks.remaining; got != before-1 {
		t.Errorf("%d ranks stay, want %d", got, before-1)
	}
}

// TestStaleByeIsIgnored checks that a Bye over a connection that its rank has replaced neither
// removes the new route nor counts.
func TestStaleByeIsIgnored(t *testing.T) {
	s, conns := started(t, 0, 0)
	s.ends[9] = &end{rank: -1, zipper: -1}
	s.handle(Joined{Conn: 9, Join: joinOf(0, 0, 0, 0, patience), Timeout: time.Minute, Room: true})
	s.handle(Departed{Conn: conns[0]})
	if s.table[0] != 9 || s.job.ranks.left[0] || len(s.faults) > 0 {
		t.Errorf("the route of rank 0 is %d; left: %v; %v", s.table[0], s.job.ranks.left[0], s.faults)
	}
}

// TestDamagedLinkIsAwaitedForThePatience checks the time for which a rank is awaited. A closed link
// may mean that the process has ended. A link that this forwarder closes because of a damaged frame
// does not: on a busy host the rank may notice later than ComesBack. The patience with a silent
// rank has begun when the rank was last heard.
func TestDamagedLinkIsAwaitedForThePatience(t *testing.T) {
	for _, test := range []struct {
		name string
		lost func(c action.Conn) Event
		want time.Duration
	}{
		{"closed", func(c action.Conn) Event { return Lost{Conn: c, Cause: io.EOF} }, ComesBack},
		{"silent", func(c action.Conn) Event { return Lost{Conn: c, Cause: io.EOF, Silent: 6 * time.Second} },
			patience*time.Millisecond - 6*time.Second},
		{"silent for the patience", func(c action.Conn) Event { return Lost{Conn: c, Cause: io.EOF, Silent: time.Minute} },
			500 * time.Millisecond},
		{"damaged", func(c action.Conn) Event { return Damaged{Conn: c, Reason: "checksum"} }, patience * time.Millisecond},
	} {
		s, conns := started(t, 0, 0)
		var armed time.Duration
		for _, a := range s.job.Handle(s.now, test.lost(conns[0])) {
			if arm, ok := a.(action.Arm); ok && arm.Timer == (action.Timer{Kind: action.Return, Of: 0}) {
				armed = arm.After
			}
		}
		if armed != test.want {
			t.Errorf("%s: rank 0 is awaited for %v, want %v", test.name, armed, test.want)
		}
	}
}

// TestResumedHalfIsNotSuspended checks that a half that runs again is not suspended any more.
func TestResumedHalfIsNotSuspended(t *testing.T) {
	s, _ := started(t, 0, 0)
	for range 2 {
		s.handle(HalfSuspended{Cluster: "b", Reason: "suspended"})
	}
	timer := action.Timer{Kind: action.Suspended, Of: 1}
	if !s.timers[timer] {
		t.Fatalf("nothing ends the job: %v", s.timers)
	}
	s.handle(HalfResumed{Cluster: "b"})
	if s.timers[timer] || len(s.job.halves.suspended) > 0 {
		t.Errorf("%v are suspended, timers %v", s.job.halves.suspended, s.timers)
	}
}

// TestMissingLinkTextsAreBounded checks that little is stored of the texts of a forwarder that
// reports many missing links.
func TestMissingLinkTextsAreBounded(t *testing.T) {
	first := joinOf(3, 1, 0, 1, patience)
	s, refused := newShell(time.Unix(1e9, 0), Config{Here: 1, Timeout: time.Minute, Notice: time.Second}, first)
	if refused != nil {
		t.Fatal(refused)
	}
	link(s, 1, 0)
	for i := range 3 * maxGapNotices {
		hear(s, 0, wire.TypeNotice, &wire.Notice{Text: strings.Repeat(string(rune('a'+i%26)), 4) + strings.Repeat("é", maxGapText)})
	}
	x := s.job.gaps.with(0)
	last := string(rune('a' + (maxGapNotices-1)%26))
	if !strings.HasPrefix(x.missing, last) || len(x.missing) > maxGapText+len("…") || x.notices != 3*maxGapNotices {
		t.Errorf("kept of %d notices: %d bytes, %.20q; want the one of number %d", x.notices, len(x.missing), x.missing, maxGapNotices)
	}
}

// TestIllegalTransition checks that an illegal transition ends the job with an internal error, and
// is reported once.
func TestIllegalTransition(t *testing.T) {
	s, _ := started(t, 0, 0)
	s.handle(Closed{}) // the kernel was asked for nothing
	if len(s.faults) != 1 || !strings.Contains(s.faults[0], "from running to ended") {
		t.Errorf("%v", s.faults)
	}
	if s.job.State() != Ending || !strings.HasPrefix(s.job.result.reason, "internal error: ") {
		t.Errorf("the job is %v: %s", s.job.State(), s.job.result.reason)
	}
}

// TestRefusedOpenerEndsTheJob checks that a job whose first rank is refused, because it belongs to
// another forwarder, is given up at once and leaves no timer.
func TestRefusedOpenerEndsTheJob(t *testing.T) {
	first := joinOf(3, 0, 0, 1, patience) // cluster a is on the network of forwarder 0
	s, refused := newShell(time.Unix(1e9, 0), Config{Here: 1, Timeout: time.Minute, Notice: time.Second}, first)
	if refused != nil {
		t.Fatal(refused)
	}
	s.ends[1] = &end{rank: -1, zipper: -1}
	s.booked = 10
	s.handle(Joined{Conn: 1, Join: first, Timeout: time.Minute, Bytes: 10, Room: true})
	if s.job.State() != Ended || s.incomplete != 1 || s.ends[1].role != leaving || len(s.faults) > 0 {
		t.Errorf("the job is %v, with timers %v; the rank is %d; %v", s.job.State(), s.timers, s.ends[1].role, s.faults)
	}
}

// TestRefusalKeepsOtherRanks checks that a refusal ends only a job in which neither a rank nor
// another forwarder waits.
func TestRefusalKeepsOtherRanks(t *testing.T) {
	good, bad := joinOf(3, 1, 0, 1, patience), joinOf(3, 0, 0, 1, 2000)
	for _, c := range []struct {
		waits string
		first func(s *shell)
	}{
		{"rank", func(s *shell) {
			s.ends[2] = &end{rank: -1, zipper: -1}
			s.handle(Joined{Conn: 2, Join: good, Timeout: time.Minute, Room: true})
		}},
		{"forwarder", func(s *shell) { link(s, 1, 0) }},
	} {
		s, refused := newShell(time.Unix(1e9, 0), Config{Here: 1, Timeout: time.Minute, Notice: time.Second}, good)
		if refused != nil {
			t.Fatal(refused)
		}
		c.first(s)
		s.ends[3], s.ends[4] = &end{rank: -1, zipper: -1}, &end{rank: -1, zipper: -1}
		s.handle(Joined{Conn: 3, Join: bad, Timeout: time.Minute, Room: true})
		s.handle(Offered{Conn: 4, Join: good, Here: 1})
		if s.job.State() != Gathering || s.ends[3].role != leaving || s.ends[4].role != leaving {
			t.Errorf("a %s waits: the job is %v, connections 3 and 4 are %d and %d", c.waits, s.job.State(),
				s.ends[3].role, s.ends[4].role)
		}
	}
}
