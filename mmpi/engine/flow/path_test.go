package flow

import (
	"testing"
	"time"
)

// TestPath checks that a long path is measured again every second, a short one no more once it is
// known, and that only the echo that was sent last counts.
func TestPath(t *testing.T) {
	const long = 2 * time.Millisecond
	var p Path
	now := time.Second
	for i, d := range []time.Duration{50 * time.Millisecond, 30 * time.Millisecond, 40 * time.Millisecond} {
		if p.RoundTrip() != 0 {
			t.Fatalf("known after %d echoes", i)
		}
		if !p.Ask(now, long) || p.Ask(now, long) {
			t.Fatalf("echo %d: not asked, or twice", i)
		}
		p.Back(now-1, now+1) // no such echo was sent
		p.Back(now, now+d)
		now += d
	}
	if got := p.RoundTrip(); got != 30*time.Millisecond {
		t.Fatalf("round trip %v, want 30ms", got)
	}
	if p.Ask(now, long) {
		t.Error("asked again at once")
	}
	now += 2 * time.Second
	if !p.Ask(now, long) {
		t.Error("not asked again after 2 s")
	}
	if p.Ask(now+time.Second, long) || !p.Ask(now+11*time.Second, long) {
		t.Error("a lost echo should be given up after 10 s")
	}
	now += 11 * time.Second
	p.Back(now, now+time.Millisecond)
	if got := p.RoundTrip(); got != time.Millisecond {
		t.Errorf("round trip %v, want 1ms", got)
	}
	if p.Ask(now+time.Hour, long) {
		t.Error("a short path is asked again")
	}
}

// simulate sends as fast as possible over a path with a rate in bytes per second and an adaptive
// window, and returns the window and the rate at the end.
func simulate(window uint64, rate float64, trip, took time.Duration) (uint64, float64) {
	type event struct {
		at time.Duration
		n  uint64 // bytes that arrive, or the limit that arrives
	}
	const step, piece = 10 * time.Microsecond, 1 << 12
	b, g := NewBudget(window), NewGrant(window)
	var data, credit []event
	var free time.Duration // time at which the line is free
	arrived, half := uint64(0), uint64(0)
	for now := time.Duration(0); now < took; now += step {
		for len(credit) > 0 && credit[0].at <= now {
			b.Raise(credit[0].n)
			credit = credit[1:]
		}
		for free <= now && b.Take(piece) {
			free = max(free, now-step) + time.Duration(piece/rate*1e9)
			data = append(data, event{free + trip/2, piece})
		}
		for len(data) > 0 && data[0].at <= now {
			if err := g.Receive(data[0].n); err != nil {
				panic(err)
			}
			g.Consume(data[0].n)
			arrived += data[0].n
			data = data[1:]
			if g.Due(true) {
				if w := g.Suits(now, trip); w > g.Window() {
					g.Grow(w - g.Window())
				}
				credit = append(credit, event{now + trip/2, g.Limit()})
			}
		}
		if now < took/2 {
			half = arrived
		}
	}
	return g.Window(), float64(arrived-half) / (took / 2).Seconds()
}

// TestWindowFitsPath checks that a window grows to about twice the content of the path within a few
// round trips, and fills the path, and that a large enough one does not change.
func TestWindowFitsPath(t *testing.T) {
	for _, c := range []struct {
		window uint64
		rate   float64
		trip   time.Duration
	}{
		{1 << 20, 117e6, 40 * time.Millisecond},
		{4 << 20, 117e6, 100 * time.Millisecond},
		{256 << 10, 117e6, 40 * time.Millisecond},
		{4 << 20, 117e6, 200 * time.Microsecond},
		{4 << 20, 2e9, 100 * time.Microsecond},
	} {
		took := max(30*c.trip, 40*time.Millisecond)
		window, rate := simulate(c.window, c.rate, c.trip, took)
		holds := c.rate * c.trip.Seconds()
		if want := max(float64(c.window), 2.3*holds); float64(window) > want {
			t.Errorf("%+v: a window of %d, want at most %.0f", c, window, want)
		}
		if rate < 0.97*c.rate {
			t.Errorf("%+v: %.0f bytes per second in a window of %d", c, rate, window)
		}
	}
	// It doubles within two round trips, the first of which begins when bytes arrive.
	if window, _ := simulate(256<<10, 117e6, 40*time.Millisecond, 100*time.Millisecond); window < 3*256<<10 {
		t.Errorf("a window of %d after two round trips", window)
	}
}
