package link

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/leidenzipper/zipper/handshake"
	"github.com/leidenzipper/zipper/internal/transport"
	"github.com/leidenzipper/zipper/internal/transport/memnet"
	"github.com/leidenzipper/zipper/internal/wire"
	"github.com/leidenzipper/zipper/mmpi/engine/fault"
	"github.com/leidenzipper/zipper/mmpi/engine/link/failover"
)

// unreopened starts the process of rank 0, which is alone in its cluster, with one link to each of
// n forwarders. sizes are the numbers of processes in the other clusters; lost links are not opened
// again. The test must hold the process's lock where a function requires that, because a goroutine
// for each lost link tries to open it.
func unreopened(t *testing.T, n int, sizes []uint32, edit func(*Config)) (*Set, *testProcess) {
	t.Helper()
	u := newProcess(t, 0, append([]uint32{1}, sizes...), func(c *Config) {
		c.Redial = func(ctx context.Context, _ int, _ Attempt) (transport.Link, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		}
		for range n {
			l, _ := memnet.Pipe(memnet.Options{})
			c.Links = append(c.Links, l)
		}
		if edit != nil {
			edit(c)
		}
	})
	return u.set, u
}

// cutOff makes every forwarder report that the ranks are out of reach.
func cutOff(t *testing.T, s *Set, ranks []int, cut bool) {
	t.Helper()
	for _, r := range s.forwarders {
		for _, rank := range ranks {
			x := wire.RailState{Rank: uint32(rank), Cut: cut, Reason: fmt.Sprintf("rank %d is lost", rank)}
			if err := s.reported(r, x); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// TestLowestUnreachableRankIsReported checks that, if many ranks are out of reach, the lowest of
// them is always the cause of the Abort and named to the user.
func TestLowestUnreachableRankIsReported(t *testing.T) {
	for range 8 {
		s, u := unreopened(t, 2, []uint32{8}, nil)
		u.lock.Lock()
		cutOff(t, s, []int{8, 3, 5, 2, 7, 4, 6}, false)
		s.end(s.tracker.Deadline(s.Now() + time.Hour))
		u.lock.Unlock()
		if !strings.Contains(u.failed, "could reach rank 2 ") || !strings.Contains(u.failed, "rank 2 is lost") {
			t.Errorf("the job ended with: %s", u.failed)
		}

		var warned string
		s, u = unreopened(t, 2, []uint32{8}, func(c *Config) { c.Warn = func(text string) { warned = text } })
		u.lock.Lock()
		cutOff(t, s, []int{8, 3, 5, 2, 7, 4, 6}, true)
		s.tracker.Notices(s.Now() + time.Hour)
		u.lock.Unlock()
		if !strings.HasPrefix(warned, "rank 2 is lost;") {
			t.Errorf("the user was told: %s", warned)
		}
	}
}

// TestMissingDirectLinkHasItsOwnReason checks that an error about a missing direct link gives the
// reason of the link to the rank that it names.
func TestMissingDirectLinkHasItsOwnReason(t *testing.T) {
	open := func(ctx context.Context) (transport.Link, error) {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	s, u := unreopened(t, 1, []uint32{3}, func(c *Config) { c.Direct = map[int]Opener{1: open, 2: open, 3: open} })
	reasons := map[int]string{1: "network unreachable", 2: "no route to host", 3: "connection refused"}
	u.lock.Lock()
	for _, r := range s.rails[1:] {
		s.dialFailed(r, errors.New(reasons[r.peer.Rank]))
	}
	u.lock.Unlock()
	err, pending := s.missingDirect()
	if err == nil || pending || !strings.Contains(err.Error(), "with rank 1 (and with 2 more): network unreachable;") {
		t.Errorf("%v, pending %t", err, pending)
	}
	l, _ := memnet.Pipe(memnet.Options{})
	if !s.DirectUp(1, l) {
		t.Fatal("the link is refused")
	}
	u.lock.Lock()
	s.down(s.rails[1], "cut") // so that the attempt which failed is forgotten
	u.lock.Unlock()
	err, pending = s.missingDirect()
	if err == nil || !pending || !strings.Contains(err.Error(), "with rank 1 (and with 2 more): it has not connected;") {
		t.Errorf("%v, pending %t", err, pending)
	}
}

// TestLeavingRailOutlivesTemporaryRefusal checks that a rail that has to say good-bye is tried
// again after a refusal that is not final, and given up after one that is.
func TestLeavingRailOutlivesTemporaryRefusal(t *testing.T) {
	for code, final := range map[wire.RefuseCode]bool{wire.RefuseTimeout: false, wire.RefuseShutdown: false,
		wire.RefuseFull: false, wire.RefuseJob: true} {
		s, u := unreopened(t, 1, []uint32{1}, nil)
		u.lock.Lock()
		r := s.forwarders[0]
		s.SendBye()
		s.down(r, "cut") // The rail owes Bye, and its link is opened again.
		over := s.dialFailed(r, fmt.Errorf("dial: %w", &handshake.Refused{Code: code, Remote: true}))
		if over != final || (r.State() == failover.Closed) != final || r.OwesBye() == final {
			t.Errorf("after %v: over %t, %v, leaves %t", code, over, r.State(), r.OwesBye())
		}
		u.lock.Unlock()
	}
}

// TestLinkClosedByProgram checks that the job ends with an error that says so if the program has
// closed the descriptor of a link or opened a file in its place, and that the link is not opened
// again.
func TestLinkClosedByProgram(t *testing.T) {
	for _, err := range []error{unix.EBADF, unix.ENOTSOCK} {
		s, u := unreopened(t, 1, []uint32{1}, nil)
		u.lock.Lock()
		s.lost(s.forwarders[0], fmt.Errorf("write: %w", err))
		u.lock.Unlock()
		if u.failed != fault.ClosedByProgram {
			t.Errorf("%v: %s", err, u.failed)
		}
	}
}
