package forwarder

import (
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"

	"github.com/leidenzipper/zipper/forwarder/budget"
	"github.com/leidenzipper/zipper/forwarder/relay"
	"github.com/leidenzipper/zipper/handshake"
	"github.com/leidenzipper/zipper/internal/transport"
	"github.com/leidenzipper/zipper/internal/wire"
)

// refusesJobs checks that no job can be opened, and the reason.
func refusesJobs(t *testing.T, b *bench, job string, code wire.RefuseCode, why string) {
	t.Helper()
	_, err := b.dial(identity(job, "a", 0, twoClusters...))
	var r *handshake.Refused
	if !errors.As(err, &r) || r.Code != code || !strings.Contains(r.Reason, why) {
		t.Errorf("job %s: %v", job, err)
	}
}

// TestDrain checks that a drained forwarder refuses new jobs, lets its present jobs end, and then
// ends.
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
	refusesJobs(t, b, "new", wire.RefuseShutdown, "drained")
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

// TestReload checks that a Reload applies to new jobs, and that present jobs go on.
func TestReload(t *testing.T) {
	b := start(t, tcpNetwork(), nil)
	r := b.join("first", twoClusters...)
	if err := b.f.Reload(Config{MaxJobs: -1}); err == nil {
		t.Error("a negative number of jobs is taken")
	}
	if err := b.f.Reload(Config{Jobs: []string{"other"}}); err != nil {
		t.Fatal(err)
	}
	refusesJobs(t, b, "second", wire.RefuseJob, "does not serve")
	if err := b.f.Reload(Config{MaxJobs: 1}); err != nil {
		t.Fatal(err)
	}
	refusesJobs(t, b, "second", wire.RefuseFull, "--max-jobs")
	if err := b.f.Reload(Config{Level: wire.LevelSealed}); err != nil {
		t.Fatal(err)
	}
	refusesJobs(t, b, "second", wire.RefuseSettings, "level")
	if err := b.f.Reload(Config{Secret: "another secret"}); err != nil {
		t.Fatal(err)
	}
	refusesJobs(t, b, "second", wire.RefuseSecret, "secret")
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

// TestReloadKeepsWhatNeedsARestart checks that Reload applies the fields that its documentation
// lists, and no other.
func TestReloadKeepsWhatNeedsARestart(t *testing.T) {
	b := start(t, tcpNetwork(), nil)
	before := b.f.policy.Load().Config
	other := Config{Loops: 7, ReadBuffer: 1 << 20, Protocol: Classic, Poll: PollBusy, Nice: 9, Trunk: 5,
		JoinTimeout: time.Minute, Patience: time.Minute, PingInterval: time.Minute, PeerTimeout: time.Hour,
		Unreachable: time.Minute, Linger: time.Minute, FlowLimit: 1, ControlLimit: 1, File: "another",
		Level: wire.LevelSealed, Secret: "s", Jobs: []string{"j"}, Memory: 1 << 24, JobMemory: 1 << 20,
		MaxTimeout: time.Minute, MaxRanks: 9, MaxGathering: 9, MaxGatheringFrom: 9, MaxUnjoined: 9,
		MaxUnjoinedFrom: 9, MaxJobs: 9, MaxJobsOf: 9, MaxLinksFrom: 9,
		Ticket: func(*wire.Join) (string, error) { return "", nil },
		Dial: func(context.Context, string, func(error)) (transport.Link, error) {
			return nil, errors.New("nobody is there")
		},
		Listeners: []transport.Listener{silent{"another"}}, NAT: scriptNAT{}, NATOff: "another", HostKey: make(ed25519.PrivateKey, 64),
		Log: zap.NewNop(), JobEnd: func(Summary) {}, Meters: Meters{Gather: &counted{}}}
	if err := b.f.Reload(other); err != nil {
		t.Fatal(err)
	}
	after := b.f.policy.Load().Config
	reloads := map[string]bool{"Level": true, "Secret": true, "Ticket": true, "Jobs": true, "Dial": true,
		"Memory": true, "JobMemory": true}
	was, is, given := reflect.ValueOf(before), reflect.ValueOf(after), reflect.ValueOf(other)
	for i, f := range reflect.VisibleFields(was.Type()) {
		if !f.IsExported() || f.Name == "Log" { // a logger has no value to compare
			continue
		}
		want := was
		if reloads[f.Name] || strings.HasPrefix(f.Name, "Max") {
			want = given
		}
		text := func(v reflect.Value) string { return fmt.Sprintf("%#v", v.Field(i).Interface()) }
		if text(was) == text(given) {
			t.Errorf("%s: the test does not change it", f.Name)
		}
		if text(is) != text(want) {
			t.Errorf("%s is %s after Reload, want %s", f.Name, text(is), text(want))
		}
	}
	if got, want := b.f.relay.Joining().Limit(), int64(1<<24/budget.JoiningShare); got != want {
		t.Errorf("links that have not joined may keep %d bytes, want %d", got, want)
	}
}

// counted is a meter.
type counted struct{ relay.Observer }

// TestReloadKeepsProtocol checks that a forwarder continues to serve jobs of the protocol with
// which it was started.
func TestReloadKeepsProtocol(t *testing.T) {
	b := start(t, tcpNetwork(), nil)
	if err := b.f.Reload(Config{Protocol: Classic}); err != nil {
		t.Fatal(err)
	}
	r := b.join("usual", twoClusters...)
	pingPong(t, r[0], r[3])
}

// TestJobsOfUser checks that tickets limit the number of jobs of each user separately.
func TestJobsOfUser(t *testing.T) {
	b := start(t, tcpNetwork(), func(c *Config) {
		c.MaxJobsOf = 1
		c.Ticket = func(j *wire.Join) (string, error) { return strings.TrimRight(j.Job, "0123456789"), nil }
	})
	ada := b.join("ada1", twoClusters...)
	refusesJobs(t, b, "ada2", wire.RefuseFull, `user "ada" has 1 jobs`)
	eve := b.join("eve1", twoClusters...)
	pingPong(t, eve[0], eve[3])
	for _, r := range ada {
		r.bye()
	}
	b.ended()
	b.join("ada2", twoClusters...)
}

// TestDeadlockedForwarderIsNotAlive checks that a forwarder whose lock is never released does not
// count as alive.
func TestDeadlockedForwarderIsNotAlive(t *testing.T) {
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
