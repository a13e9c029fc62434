package forwarder

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/leidenzipper/zipper/handshake"
	"github.com/leidenzipper/zipper/wire"
)

// opensNot checks that nobody can open a job, and why.
func opensNot(t *testing.T, b *bench, job string, code wire.RefuseCode, why string) {
	t.Helper()
	_, err := b.dial(identity(job, "a", 0, twoClusters...))
	var r *handshake.Refused
	if !errors.As(err, &r) || r.Code != code || !strings.Contains(r.Reason, why) {
		t.Errorf("job %s: %v", job, err)
	}
}

// TestDrain: a forwarder that is drained takes no new jobs, lets those that it has come to their
// end, and then ends.
func TestDrain(t *testing.T) {
	b := start(t, tcpNetwork(), nil)
	running := b.join("running", twoClusters...)
	gathering := make(chan *rank)
	go func() {
		r, err := b.dial(identity("gathering", "a", 0, wire.Cluster{Name: "a", Size: 2}))
		if err != nil {
			t.Error(err)
		}
		gathering <- r
	}()
	for len(b.f.Status().Jobs) < 2 {
		time.Sleep(time.Millisecond)
	}
	b.f.Drain()
	b.f.Drain() // once more changes nothing
	if !b.f.Status().Draining {
		t.Error("the status does not say so")
	}
	opensNot(t, b, "new", wire.RefuseShutdown, "drained")
	second, err := b.dial(identity("gathering", "a", 1, wire.Cluster{Name: "a", Size: 2}))
	if err != nil {
		t.Fatal(err)
	}
	pingPong(t, running[0], running[3])
	for _, r := range append(running, second, <-gathering) {
		select {
		case <-b.over:
			t.Fatal("it has ended before its jobs")
		default:
			r.bye()
		}
	}
	select {
	case <-b.over:
	case <-time.After(patience):
		t.Error("its jobs are over, and it has not ended")
	}
}

// TestReload: whom a forwarder serves changes for those who come; jobs that are there go on.
func TestReload(t *testing.T) {
	b := start(t, tcpNetwork(), nil)
	r := b.join("first", twoClusters...)
	if err := b.f.Reload(Config{MaxJobs: -1}); err == nil {
		t.Error("a negative number of jobs is taken")
	}
	if err := b.f.Reload(Config{Jobs: []string{"other"}}); err != nil {
		t.Fatal(err)
	}
	opensNot(t, b, "second", wire.RefuseJob, "does not serve")
	if err := b.f.Reload(Config{MaxJobs: 1}); err != nil {
		t.Fatal(err)
	}
	opensNot(t, b, "second", wire.RefuseJob, "--max-jobs")
	if err := b.f.Reload(Config{Level: wire.LevelSealed}); err != nil {
		t.Fatal(err)
	}
	opensNot(t, b, "second", wire.RefuseSettings, "level")
	if err := b.f.Reload(Config{Secret: "another secret"}); err != nil {
		t.Fatal(err)
	}
	opensNot(t, b, "second", wire.RefuseSecret, "secret")
	pingPong(t, r[0], r[3])
	if err := b.f.Reload(Config{Memory: 1 << 20}); err != nil {
		t.Fatal(err)
	}
	if got := b.f.memory.Limit(); got != 1<<20 {
		t.Errorf("memory of %d bytes", got)
	}
	r2 := b.join("second", twoClusters...)
	pingPong(t, r2[0], r2[3])
}

// TestJobsOfUser: with tickets a user has so many jobs at once, and others theirs.
func TestJobsOfUser(t *testing.T) {
	b := start(t, tcpNetwork(), func(c *Config) {
		c.MaxJobsOf = 1
		c.Ticket = func(j *wire.Join) (string, error) { return strings.TrimRight(j.Job, "0123456789"), nil }
	})
	ada := b.join("ada1", twoClusters...)
	opensNot(t, b, "ada2", wire.RefuseJob, `user "ada" has 1 jobs`)
	eve := b.join("eve1", twoClusters...)
	pingPong(t, eve[0], eve[3])
	for _, r := range ada {
		r.bye()
	}
	b.ended()
	b.join("ada2", twoClusters...)
}

// TestAlive: a forwarder whose lock is held for ever is not.
func TestAlive(t *testing.T) {
	b := start(t, tcpNetwork(), nil)
	if err := b.f.Alive(t.Context()); err != nil {
		t.Error(err)
	}
	b.f.mu.Lock()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if err := b.f.Alive(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("its lock is held: %v", err)
	}
	b.f.mu.Unlock()
}
