package link

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/leidenzipper/zipper/handshake"
	"github.com/leidenzipper/zipper/internal/transport"
	"github.com/leidenzipper/zipper/internal/transport/memnet"
	"github.com/leidenzipper/zipper/internal/wire"
	"github.com/leidenzipper/zipper/mmpi/engine/fault"
	"github.com/leidenzipper/zipper/mmpi/engine/wait"
	"github.com/leidenzipper/zipper/mmpi/engine/world"
)

// newFakeSet returns the set of rank 0, which is alone in its cluster, with one link to each of n
// forwarders. sizes are the processes of the other clusters; nothing reopens a link by itself.
func newFakeSet(t *testing.T, n int, sizes []uint32, edit func(*Config)) (*Set, *fakeUpper) {
	t.Helper()
	w := &world.World{Clusters: []wire.Cluster{{Name: "a", Size: 1}}}
	for i, size := range sizes {
		w.Clusters = append(w.Clusters, wire.Cluster{Name: fmt.Sprintf("b%d", i), Size: size})
	}
	u := &fakeUpper{}
	cfg := Config{World: w, Upper: u, Lock: new(sync.Mutex), System: wait.NewLinux(),
		Redial: func(ctx context.Context, _ int, _ bool) (transport.Link, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		}, Limits: Limits{NoRail: time.Minute}}
	for range n {
		l, _ := memnet.Pipe(memnet.Options{})
		cfg.Links = append(cfg.Links, l)
	}
	if edit != nil {
		edit(&cfg)
	}
	s, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	u.set = s
	t.Cleanup(s.Close)
	return s, u
}

// cutOff has every forwarder report that the ranks are out of reach.
func cutOff(t *testing.T, s *Set, ranks []int, cut bool) {
	t.Helper()
	for _, r := range s.forwarders {
		for _, rank := range ranks {
			x := wire.RailState{Rank: uint32(rank), Cut: cut, Reason: fmt.Sprintf("rank %d is lost", rank)}
			if err := s.failover.forwarderSays(r, x); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// TestLowestUnreachableRankIsReported checks that of many ranks that are out of reach the lowest
// one is the cause of the abort, and the one that the user is told of, every time.
func TestLowestUnreachableRankIsReported(t *testing.T) {
	for range 8 {
		s, u := newFakeSet(t, 2, []uint32{8}, nil)
		cutOff(t, s, []int{8, 3, 5, 2, 7, 4, 6}, false)
		s.failover.checkReachable(s.Now() + time.Hour)
		if !strings.Contains(u.failed, "could reach rank 2 ") || !strings.Contains(u.failed, "rank 2 is lost") {
			t.Errorf("the job ended with: %s", u.failed)
		}

		var warned string
		s, _ = newFakeSet(t, 2, []uint32{8}, func(c *Config) { c.Warn = func(text string) { warned = text } })
		cutOff(t, s, []int{8, 3, 5, 2, 7, 4, 6}, true)
		s.failover.tellCut(s.Now() + 2*cutAfter)
		if !strings.HasPrefix(warned, "rank 2 is lost;") {
			t.Errorf("the user was told: %s", warned)
		}
	}
}

// TestRailRestoresItsOwnRanksOnly checks that a rail that comes up resets the deadlines of the
// ranks that it leads to, and of no others.
func TestRailRestoresItsOwnRanksOnly(t *testing.T) {
	s, _ := newFakeSet(t, 4, []uint32{1, 1}, func(c *Config) { c.Routes = [][]int{{0, 1}, {0, 1}, {2, 3}} })
	for _, r := range s.forwarders {
		s.failover.railDown(r, "cut")
	}
	up := func(i int) {
		t.Helper()
		l, _ := memnet.Pipe(memnet.Options{})
		if !s.railUp(s.forwarders[i], l) {
			t.Fatalf("the link of rail %d is refused", i)
		}
	}
	up(0) // now both ranks have been checked: 1 is within reach, 2 is not
	since, out := s.failover.unreachableSince[2]
	if !out {
		t.Fatal("rank 2 is taken for reachable")
	}
	for s.Now() == since { // until a deadline that is set again differs
	}
	up(1)
	if got, out := s.failover.unreachableSince[2]; !out || got != since {
		t.Errorf("rank 2 is out of reach since %v, then since %v (%t)", since, got, out)
	}
	up(2)
	if got := s.failover.unreachableSince; len(got) > 0 {
		t.Errorf("out of reach: %v", got)
	}
}

// TestMissingDirectLinkHasItsOwnReason checks that the rank which is named for its missing direct
// link is named with the reason of that link.
func TestMissingDirectLinkHasItsOwnReason(t *testing.T) {
	open := func(context.Context) (transport.Link, error) { return nil, nil }
	s, _ := newFakeSet(t, 1, []uint32{3}, func(c *Config) { c.Direct = map[int]Opener{1: open, 2: open, 3: open} })
	reasons := map[int]string{1: "network unreachable", 2: "no route to host", 3: "connection refused"}
	for _, r := range s.rails[1:] {
		r.failed = errors.New(reasons[r.peer.Rank])
	}
	err, pending := s.missingDirect()
	if err == nil || pending || !strings.Contains(err.Error(), "with rank 1 (and with 2 more): network unreachable;") {
		t.Errorf("%v, pending %t", err, pending)
	}
	s.rails[1].failed = nil
	err, pending = s.missingDirect()
	if err == nil || !pending || !strings.Contains(err.Error(), "with rank 1 (and with 2 more): it has not called;") {
		t.Errorf("%v, pending %t", err, pending)
	}
}

// TestLeavingRailOutlivesTemporaryRefusal checks that a rail that has to say good-bye is tried
// again after a refusal that is not final, and given up after one that is.
func TestLeavingRailOutlivesTemporaryRefusal(t *testing.T) {
	for code, final := range map[wire.RefuseCode]bool{wire.RefuseTimeout: false, wire.RefuseShutdown: false,
		wire.RefuseFull: false, wire.RefuseJob: true} {
		s, _ := newFakeSet(t, 1, []uint32{1}, nil)
		r := s.forwarders[0]
		s.failover.railDown(r, "cut") // to dialling
		r.leaves = true
		over := s.failover.redialFailed(r, fmt.Errorf("dial: %w", &handshake.Refused{Code: code, Remote: true}))
		if over != final || (r.state == closed) != final || r.leaves == final {
			t.Errorf("after %v: over %t, %v, leaves %t", code, over, r.state, r.leaves)
		}
	}
}

// TestLinkClosedByProgram checks that a link whose descriptor the program has closed, or has a file
// in place of, ends the job with an error that says so, and is not opened again.
func TestLinkClosedByProgram(t *testing.T) {
	for _, err := range []error{unix.EBADF, unix.ENOTSOCK} {
		s, u := newFakeSet(t, 1, []uint32{1}, nil)
		s.failover.lost(s.forwarders[0], fmt.Errorf("write: %w", err))
		if u.failed != fault.ClosedByProgram {
			t.Errorf("%v: %s", err, u.failed)
		}
	}
}
