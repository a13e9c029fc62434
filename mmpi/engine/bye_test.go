package engine

import (
	"strings"
	"testing"
	"time"

	"github.com/leidenzipper/zipper/internal/jobenv"
	"github.com/leidenzipper/zipper/internal/wire"
)

// inventBye has a Bye that nobody has said come before a message from the first rank to the last,
// at a job's only forwarder or, there, at the last rank.
func inventBye(t *testing.T, there bool) (engines []*Engine, p *proxy, arrived bool) {
	_, addr := serve(t)
	p = newProxy(t, addr)
	job := jobenv.Job{ID: "test", Secret: "s", Level: "checked", Forwarders: []string{p.ln.Addr().String()},
		Timeout: 20 * time.Second}
	engines = joinJob(t, job, 1, 1)
	ready(t, engines)
	ev := &event{Only: wire.TypeEager, Before: wire.AppendFrame(nil, wire.Control(wire.TypeBye), nil)}
	if there {
		ev.Way = 1
	}
	first, last := engines[0], engines[1]
	from, to := spanAll(t, first), spanAll(t, last)
	in := make([]byte, 1)
	var sent, got Cell
	if err := last.Irecv(to, KindP2P, in, 0, 1, &got); err != nil {
		t.Fatal(err)
	}
	p.arm(ev)
	if err := first.Isend(from, KindP2P, []byte{42}, 1, 1, false, &sent); err != nil {
		t.Fatal(err)
	}
	for end := time.Now().Add(20 * time.Second); !got.Done() && first.Err() == nil && time.Now().Before(end); {
		last.Progress(time.Millisecond)
		first.Progress(0)
	}
	if !ev.Met.Load() {
		t.Fatal("no message went by")
	}
	return engines, p, got.Done() && got.Err() == nil && in[0] == 42
}

// TestInventedBye: a forwarder that says good-bye is a link that is lost. Where it is still there
// the link is made again, and nothing is lost.
func TestInventedBye(t *testing.T) {
	engines, p, arrived := inventBye(t, true)
	if !arrived {
		t.Errorf("the message has not arrived: %v, %v", engines[0].Err(), engines[1].Err())
	}
	if n := p.links(); n != 3 {
		t.Errorf("%d links, want one more than 2", n)
	}
	ready(t, engines)
}

// TestInventedByeOfRank: a forwarder has to believe a rank's Bye, and has told others of it by the
// time that the rank objects. So the rank ends, at once, and says why; its launcher ends the
// others.
func TestInventedByeOfRank(t *testing.T) {
	engines, _, _ := inventBye(t, false)
	for end := time.Now().Add(20 * time.Second); engines[0].Err() == nil && time.Now().Before(end); {
		engines[0].Progress(time.Millisecond)
	}
	if err := engines[0].Err(); err == nil || !strings.Contains(err.Error(), "said good-bye unasked") ||
		!strings.Contains(err.Error(), "has left job") {
		t.Errorf("the rank that has not said it: %v", err)
	}
}
