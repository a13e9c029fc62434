package load

import (
	"context"
	"errors"
	"math"
	"testing"
	"time"

	"github.com/leidenzipper/zipper/forwarder"
	"github.com/leidenzipper/zipper/forwarder/forwardertest"
)

func TestSlopeIsMemoryPerLink(t *testing.T) {
	rows := []Row{{Links: 2, BeforeKiB: 100, IdleKiB: 118}, {Links: 10, BeforeKiB: 50, IdleKiB: 100},
		{Links: 100, BeforeKiB: 70, IdleKiB: 480}}
	if got, ok := Slope(rows); !ok || math.Abs(got-4) > 1e-9 {
		t.Errorf("slope %v, %v; want 4", got, ok)
	}
	if _, ok := Slope(rows[:1]); ok {
		t.Error("one row has a slope")
	}
	if _, ok := Slope([]Row{{Links: 2}, {Links: 4}}); ok {
		t.Error("unknown memory has a slope")
	}
}

func serve(t *testing.T) string {
	t.Helper()
	_, addr := forwardertest.Serve(t, forwarder.Config{Loops: 2})
	return addr
}

// TestEveryMessageReturns checks that every message returns, and that a receiver that does not read
// delays no other.
func TestEveryMessageReturns(t *testing.T) {
	o := Options{Addr: serve(t), Links: 16, PerHost: 3, Size: 8, Window: 4, Duration: 200 * time.Millisecond,
		Slow: true,
		Job:  "load", Secret: "s"}
	r, err := Run(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	if r.Rate <= 0 || r.Jain <= 0 || r.Jain > 1 || r.LatencyUS <= 0 || r.LoadedUS <= 0 || r.Latency99 < r.LatencyUS ||
		r.SlowRatio <= 0 || r.JoinSent <= 0 || r.LeaveS <= 0 {
		t.Errorf("implausible: %+v", r)
	}
}

func TestRunEndsWithContext(t *testing.T) {
	// A deadline would also be the dialer's, whose own time-out may come first.
	ctx, cancel := context.WithCancel(t.Context())
	defer time.AfterFunc(100*time.Millisecond, cancel).Stop()
	begin := time.Now()
	if _, err := Run(ctx, Options{Addr: serve(t), Links: 4, PerHost: 1, Window: 1, Duration: time.Hour, Job: "long",
		Secret: "s"}); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
	if took := time.Since(begin); took > 30*time.Second {
		t.Errorf("took %v", took)
	}
}

func TestBadOptions(t *testing.T) {
	for _, o := range []Options{{Links: 3, PerHost: 1, Window: 1, Duration: 1}, {Links: 2, PerHost: 1, Duration: 1},
		{Links: 2, PerHost: 1, Window: 1}, {Links: 2, PerHost: 1, Window: 1, Duration: 1, Size: 1 << 30},
		{Links: 2, Window: 1, Duration: 1}, {Links: 1 << 30, PerHost: 1, Window: 1, Duration: 1}} {
		if _, err := Run(t.Context(), o); err == nil {
			t.Errorf("%+v was accepted", o)
		}
	}
}
