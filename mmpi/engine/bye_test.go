package engine

import (
	"strings"
	"testing"
	"time"

	"github.com/leidenzipper/zipper/internal/jobenv"
	"github.com/leidenzipper/zipper/internal/wire"
)

// forgeBye inserts a forged Bye before a message from the first rank to the last, at a job's only
// forwarder or, with there, at the last rank. It reports whether the message arrived.
func forgeBye(t *testing.T, there bool) (engines []*Engine, p *proxy, arrived bool) {
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
	if !ev.Happened.Load() {
		t.Fatal("no message went by")
	}
	return engines, p, got.Done() && got.Err() == nil && in[0] == 42
}

// TestForgedByeLosesOnlyTheLink checks that a Bye in the forwarder's name counts as a lost link:
// the rank reconnects if the forwarder is still running, and no message is lost.
func TestForgedByeLosesOnlyTheLink(t *testing.T) {
	engines, p, arrived := forgeBye(t, true)
	if !arrived {
		t.Errorf("the message has not arrived: %v, %v", engines[0].Err(), engines[1].Err())
	}
	if n := p.links(); n != 3 {
		t.Errorf("%d links, want one more than 2", n)
	}
	ready(t, engines)
}

// TestForgedByeOfRankEndsTheRank checks that a rank whose Bye was forged ends at once and says
// why. The forwarder has to believe the Bye, and has told others of it by the time that the rank
// objects; the rank's launcher ends the others.
func TestForgedByeOfRankEndsTheRank(t *testing.T) {
	engines, _, _ := forgeBye(t, false)
	for end := time.Now().Add(20 * time.Second); engines[0].Err() == nil && time.Now().Before(end); {
		engines[0].Progress(time.Millisecond)
	}
	if err := engines[0].Err(); err == nil || !strings.Contains(err.Error(), "confirmed a goodbye that was not sent") ||
		!strings.Contains(err.Error(), "has left job") {
		t.Errorf("the rank that has not said it: %v", err)
	}
}
