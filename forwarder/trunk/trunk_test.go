package trunk

import (
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/leidenzipper/zipper/internal/transport"
)

func TestNew(t *testing.T) {
	near, long := transport.Path{RoundTrip: time.Millisecond}, transport.Path{RoundTrip: 20 * time.Millisecond}
	for _, c := range []struct {
		path  transport.Path
		known bool
		fixed int
		want  int
		grows bool
	}{
		{near, true, 0, 1, false},
		{long, true, 0, 5, true},
		{long, false, 0, 1, false},
		{near, true, 3, 4, false},
		{long, true, 1, 1, false},
		{long, true, 100, 17, false},
	} {
		s := New(c.path, c.known, c.fixed)
		if s.Connections() != c.want || s.Grows() != c.grows {
			t.Errorf("%+v: %d connections, grows: %v", c, s.Connections(), s.Grows())
		}
	}
}

// TestGrow checks that the trunk grows, up to the maximum, while its connections wait for their
// buffers, but not while they are idle, new, or limited by the path.
func TestGrow(t *testing.T) {
	s := New(transport.Path{RoundTrip: time.Second}, true, 0)
	now := map[int]transport.Path{}
	pass := func(n int, busy, short time.Duration) bool {
		next := map[int]transport.Path{}
		for i := range n {
			next[i] = transport.Path{Busy: now[i].Busy + busy, Short: now[i].Short + short}
		}
		now = next
		return s.Grow(now)
	}
	for _, c := range []struct {
		what        string
		n           int
		busy, short time.Duration
		want        int
	}{
		{"new", 4, Measure, Measure, 5},
		{"idle", 4, 0, 0, 5},
		{"the path is full", 4, Measure, Measure / 4, 5},
		{"one is missing", 3, Measure, Measure, 5},
		{"one is back, and new", 4, Measure, Measure, 5},
		{"all are short", 4, Measure, Measure * 3 / 4, 9},
		{"the new ones are new", 8, Measure, Measure, 9},
		{"all are short again", 8, Measure, Measure, 17},
		{"there are no more", 16, Measure, Measure, 17},
		{"nor then", 16, Measure, Measure, 17},
	} {
		before := s.Connections()
		if more := pass(c.n, c.busy, c.short); s.Connections() != c.want || more != (before != c.want) {
			t.Errorf("%s: %d connections, more: %v", c.what, s.Connections(), more)
		}
	}
}

// TestLosses checks that a connection that loses packets twice in a row is named, but not after one
// loss, or a few among many packets.
func TestLosses(t *testing.T) {
	var l Losses
	now := map[int]transport.Path{0: {}, 1: {}}
	pass := func(sent, repeated uint64) []int {
		next := maps.Clone(now)
		next[1] = transport.Path{Sent: now[1].Sent + sent, Repeated: now[1].Repeated + repeated}
		now = next
		return l.Look(now)
	}
	for i, c := range []struct {
		sent, repeated uint64
		want           bool
	}{{1000, 0, false}, {1000, 100, false}, {1000, 0, false}, {100000, 5, false}, {100000, 4, false},
		{100000, 5, false},
		{0, 0, false}, {100, 1, false}, {100, 1, true}, {100, 1, true}} {
		if got := pass(c.sent, c.repeated); (len(got) == 1 && got[0] == 1) != c.want || len(got) > 1 {
			t.Errorf("%d: %v", i, got)
		}
	}
	now[1] = transport.Path{Sent: 10, Repeated: 1} // another connection
	if got := l.Look(now); len(got) > 0 {
		t.Errorf("another one: %v", got)
	}
}

// TestWarming checks that batches double as each is answered, up to a batch of a burst, but not on
// a path that is short or full, and that a surplus answer changes nothing.
func TestWarming(t *testing.T) {
	long := transport.Path{RoundTrip: 40 * time.Millisecond}
	for _, c := range []struct {
		what  string
		path  transport.Path
		known bool
		takes func(batch int) time.Duration
		want  []int
	}{
		{"far", long, true, func(int) time.Duration { return long.RoundTrip }, []int{1, 2, 4, 8, 16, 32, 64, 128}},
		{"full", long, true, func(n int) time.Duration { return time.Duration(n) * long.RoundTrip }, []int{1, 2, 4, 8}},
		{"near", transport.Path{RoundTrip: time.Millisecond}, true, func(int) time.Duration { return 0 }, []int{1}},
		{"not known", long, false, func(int) time.Duration { return 0 }, []int{1}},
	} {
		var w Warming
		if !w.Warm() || w.Silent() {
			t.Errorf("%s: has begun", c.what)
		}
		now := time.Unix(1, 0)
		n := w.Begin(now)
		if w.Warm() || !w.Silent() {
			t.Errorf("%s: nothing is answered yet", c.what)
		}
		var got []int
		for n > 0 {
			got = append(got, n)
			now = now.Add(c.takes(n))
			for range n - 1 {
				if more := w.Answered(now, c.path, c.known); more != 0 || w.Warm() {
					t.Fatalf("%s: %d more, before all of %d are answered", c.what, more, n)
				}
			}
			n = w.Answered(now, c.path, c.known)
			if w.Silent() {
				t.Errorf("%s: silent", c.what)
			}
		}
		if !slices.Equal(got, c.want) || !w.Warm() || w.Answered(now, c.path, c.known) != 0 {
			t.Errorf("%s: %v, want %v", c.what, got, c.want)
		}
	}
}
