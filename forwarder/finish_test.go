package forwarder

import (
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/leidenzipper/zipper/forwarder/job"
	"github.com/leidenzipper/zipper/handshake"
	"github.com/leidenzipper/zipper/internal/wire"
)

// slowClosingTable is a NAT whose CloseWays takes as long as a kernel that is asked by netlink, so
// that other events of the job occur while the ways are closed.
type slowClosingTable struct{ passed }

func (u *slowClosingTable) CloseWays(at []netip.AddrPort) error {
	time.Sleep(20 * time.Millisecond)
	return u.passed.CloseWays(at)
}

// TestJobEndsOnceWhenItsLinksCloseTogether checks that a job whose links close together ends once:
// the deadlines for its ranks to return pass while the kernel closes its ways. A second job on the
// same forwarder goes on.
func TestJobEndsOnceWhenItsLinksCloseTogether(t *testing.T) {
	const rounds = 100
	for name, layout := range map[string][]wire.Cluster{
		"12 and 12 ranks": {{Name: "a", Size: 12}, {Name: "b", Size: 12}},
		"two ranks":       {{Name: "a", Size: 1}, {Name: "b", Size: 1}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			table := &slowClosingTable{}
			b := start(t, tcpNetwork(), func(c *Config) { c.NAT = table })
			other := b.join("other", twoClusters...)
			offered(other)
			for range rounds {
				r := b.joinInside(insideOf,
					func(id *handshake.Identity) { id.Patience = 20 }, layout...)
				offered(r)
				last := uint32(len(r) - 1)
				r[last].ask(0)
				r[last].way()
				var all sync.WaitGroup
				for _, x := range r {
					all.Go(func() { x.link.Close() })
				}
				all.Wait()
				if s := b.ended(); s.OK || s.Job != "j" {
					t.Fatalf("summary %+v, want a failure of job j", s)
				}
				pingPong(t, other[0], other[2])
			}
			if n := table.closings(); n != rounds {
				t.Errorf("the kernel took back the ways of %d jobs, want %d", n, rounds)
			}
			if got := b.f.Status().Totals; got.Failed != rounds {
				t.Errorf("%d failed jobs are counted, want %d", got.Failed, rounds)
			}
		})
	}
}

// TestIllegalTransitionEndsItsJobAlone checks that an illegal transition ends its job with an
// internal error, is counted, and does not affect the forwarder and its other jobs.
func TestIllegalTransitionEndsItsJobAlone(t *testing.T) {
	b := start(t, tcpNetwork(), func(c *Config) { c.strict = false })
	other := b.join("other", twoClusters...)
	r := b.join("j", twoClusters...)
	b.f.named("j").take(job.Closed{}) // the kernel was asked for nothing
	for _, x := range r {
		_, body := x.expect(wire.TypeAbort)
		if a, err := wire.ParseAbort(body); err != nil || a.Code != 1 || a.Rank != wire.Nobody ||
			!strings.HasPrefix(a.Reason, "internal error: ") || !strings.Contains(a.Reason, "from running to ended") {
			t.Errorf("Abort %+v, %v; want an internal error that names the transition", a, err)
		}
		x.link.Close()
	}
	if s := b.ended(); s.OK || s.Job != "j" {
		t.Errorf("summary %+v, want a failure of job j", s)
	}
	pingPong(t, other[0], other[2])
	if got := b.f.Status().Totals.Internal; got != 1 {
		t.Errorf("%d internal errors are counted, want 1", got)
	}
}

// TestHalfEndsWhileWaysAreClosed checks that a launcher's report of the end of its half has no
// effect while the kernel closes the ways of the job, which then ends once.
func TestHalfEndsWhileWaysAreClosed(t *testing.T) {
	table := newSlowTable()
	b := startWays(t, table, func(c *Config) { c.Loops = 1 })
	other := b.join("other", twoClusters...)
	offered(other)
	joined := make(chan []*rank)
	go func() {
		joined <- b.joinInside(insideOf,
			func(id *handshake.Identity) { id.Patience = patience.Milliseconds() }, twoClusters...)
	}()
	r := <-joined
	offered(r)
	r[3].ask(0)
	<-table.begun
	table.answer <- true
	r[3].way()
	for _, x := range r {
		x.link.Close()
	}
	linked := func() bool {
		return slices.ContainsFunc(b.f.Status().Jobs, func(j JobStatus) bool { return j.Job == "j" && j.Joined > 0 })
	}
	for linked() {
		pingPong(t, other[0], other[2])
	}
	for range 4 {
		if answer, err := b.tell("s3cret", wire.HalfEnded, time.Minute); err != nil || answer != "accepted" {
			t.Fatalf("%q, %v; want the word to be heard", answer, err)
		}
	}
	<-table.begun
	pingPong(t, other[0], other[2])
	table.answer <- true
	if s := b.ended(); s.Code != 7 || s.Reason != "job j ended: cluster b is why" {
		t.Errorf("summary %+v, want the launcher's reason", s)
	}
	pingPong(t, other[1], other[3])
}
