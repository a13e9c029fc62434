package forwarder

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/leidenzipper/zipper/forwarder/halves"
	"github.com/leidenzipper/zipper/handshake"
	"github.com/leidenzipper/zipper/internal/dial"
	"github.com/leidenzipper/zipper/internal/wire"
)

// tell reports the state of cluster b of job j to the forwarder.
func (b *bench) tell(secret string, state wire.HalfState, ran time.Duration) (string, error) {
	return dial.Tell(context.Background(), b.ln.Addr(), wire.Half{State: state, Code: 7, Job: "j", Cluster: "b",
		Reason:    "cluster b is why",
		TimeoutMS: 60000, RanMS: uint32(ran.Milliseconds())}, secret, patience)
}

// gone checks the reason that a rank of cluster a gets.
func gone(t *testing.T, err error, want string) {
	t.Helper()
	var r *handshake.Refused
	if !errors.As(err, &r) || r.Code != wire.RefuseHalf || !strings.Contains(r.Reason, want) || !r.Final() {
		t.Errorf("%v, want %s", err, want)
	}
}

// TestHalfEnds checks that a launcher can end its job while it gathers, before it is here, and
// while it runs, and that a launcher without the job's secret has no effect.
func TestHalfEnds(t *testing.T) {
	b := start(t, tcpNetwork(), nil)
	gathering := func() chan error {
		done := make(chan error, 1)
		go func() {
			_, err := b.dial(identity("j", "a", 0, twoClusters...))
			done <- err
		}()
		for len(b.f.Status().Jobs) == 0 {
			time.Sleep(time.Millisecond)
		}
		return done
	}
	waiting := gathering()
	if s, err := b.tell("another", wire.HalfEnded, 0); err != nil || s != "noted for the other halves" {
		t.Errorf("another secret: %q, %v", s, err)
	}
	if s, err := b.tell("s3cret", wire.HalfEnded, 0); err != nil || s != "accepted" {
		t.Errorf("while it gathers: %q, %v", s, err)
	}
	gone(t, <-waiting, "job j ended: cluster b is why")
	_, err := b.dial(identity("j", "a", 1, twoClusters...)) // a rank that is late
	gone(t, err, "before this half came: cluster b is why")

	// Cluster b starts again, so a does, too.
	r := b.join("j", twoClusters[1], twoClusters[0])
	pingPong(t, r[0], r[3])
	if s, err := b.tell("s3cret", wire.HalfEnded, time.Minute); err != nil || s != "accepted" {
		t.Errorf("while it runs: %q, %v", s, err)
	}
	for _, rank := range r {
		_, body := rank.expect(wire.TypeAbort)
		if a, err := wire.ParseAbort(body); err != nil || a.Code != 7 || a.Reason != "job j ended: cluster b is why" ||
			a.Rank != wire.Nobody {
			t.Errorf("%+v, %v", a, err)
		}
		rank.link.Close()
	}
	if s := b.ended(); s.Code != 7 || s.OK {
		t.Errorf("%+v", s)
	}
	// The launchers of the job that has ended say so: the next one of this id does not hear of it.
	if s, err := b.tell("s3cret", wire.HalfEnded, time.Minute); err != nil || s != "the job has ended" {
		t.Errorf("after it: %q, %v", s, err)
	}
	r = b.join("j", twoClusters...)
	for _, rank := range r {
		rank.bye()
	}
	b.settled()
	if s, err := b.tell("s3cret", wire.HalfSuspended, 0); err != nil || s != "the job is not here" {
		t.Errorf("suspended, without a job: %q, %v", s, err)
	}
	if s, err := b.tell("s3cret", wire.HalfEnded, 0); err != nil || s != "noted for the other halves" {
		t.Errorf("of the next run: %q, %v", s, err)
	}
	_, err = b.dial(identity("j", "a", 0, twoClusters...))
	gone(t, err, "before this half came")
}

// TestLongReasonOfAHalf checks that a reason which is cut in the midst of a character reaches ranks
// as text.
func TestLongReasonOfAHalf(t *testing.T) {
	b := start(t, tcpNetwork(), nil)
	whole := strings.Repeat("x", halves.MaxReason-1)
	half := wire.Half{State: wire.HalfEnded, Job: "j", Cluster: "b", Reason: whole + "ü", TimeoutMS: 60000}
	if _, err := dial.Tell(context.Background(), b.ln.Addr(), half, "s3cret", patience); err != nil {
		t.Fatal(err)
	}
	_, err := b.dial(identity("j", "a", 0, twoClusters...))
	gone(t, err, "before this half came: "+whole+" (start")
}

// TestHalfIsSuspended checks that a half may be suspended for the job's patience.
func TestHalfIsSuspended(t *testing.T) {
	b := start(t, tcpNetwork(), nil)
	run := func(p time.Duration) (ranks []*rank) {
		joined := make(chan *rank, 2)
		layout := []wire.Cluster{{Name: "a", Size: 1}, {Name: "b", Size: 1}}
		for _, c := range layout {
			go func() {
				id := identity("j", c.Name, 0, layout...)
				id.Patience = p.Milliseconds()
				r, err := b.dial(id)
				if err != nil {
					t.Error(err)
				}
				joined <- r
			}()
		}
		return []*rank{<-joined, <-joined}
	}
	say := func(state wire.HalfState) {
		if s, err := b.tell("s3cret", state, 0); err != nil || s != "accepted" {
			t.Errorf("%v: %q, %v", state, s, err)
		}
	}
	r := run(time.Hour)
	say(wire.HalfSuspended)
	say(wire.HalfSuspended)
	say(wire.HalfResumed)
	for _, rank := range r {
		rank.bye()
	}
	b.ended()
	r = run(100 * time.Millisecond)
	say(wire.HalfSuspended)
	for _, rank := range r {
		_, body := rank.expect(wire.TypeAbort)
		if a, err := wire.ParseAbort(body); err != nil || !strings.Contains(a.Reason,
			"cluster b is why for longer than the job's patience of 100ms (--patience") {
			t.Errorf("%+v, %v", a, err)
		}
	}
}
