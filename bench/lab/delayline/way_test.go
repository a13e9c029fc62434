package delayline

import (
	"bytes"
	"encoding/binary"
	"math"
	"strings"
	"testing"
	"time"
)

const us = time.Microsecond

func way(t *testing.T, o Options) *Way {
	t.Helper()
	w, err := NewWay(o, 0)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// send offers a frame of one packet.
func send(w *Way, bytes int, at time.Duration) {
	b := w.Room()
	clear(b[:HeaderBytes+bytes])
	b[HeaderBytes] = byte(bytes)
	w.Offer(HeaderBytes+bytes, at)
}

// drain takes all frames in flight, each at its time, and returns the times and lengths.
func drain(w *Way) (times []time.Duration, lengths []int) {
	for {
		due, ok := w.Next()
		if !ok {
			return times, lengths
		}
		head, payload := w.Take(due)
		times, lengths = append(times, due), append(lengths, len(head)+len(payload)-HeaderBytes)
	}
}

func TestDelayAndRate(t *testing.T) {
	w := way(t, Options{Delay: 20 * time.Millisecond, Rate: 1e9, MTU: 1500})
	for range 3 {
		send(w, 1514, 100*us) // 1538 bytes on the line: 12.304 us
	}
	send(w, 60, 200*us) // the line is idle: 84 bytes, 0.672 us
	if head, _ := w.Take(20*time.Millisecond + 112*us); head != nil {
		t.Error("a packet left before its time")
	}
	times, _ := drain(w)
	for i, want := range []float64{20112.304, 20124.608, 20136.912, 20200.672} {
		if got := float64(times[i]) / 1e3; math.Abs(got-want) > 0.01 {
			t.Errorf("packet %d is due at %v us, want %v", i, got, want)
		}
	}
}

// TestNoRateMeansNoQueue checks that without a rate only the delay counts, and that there is no
// queue.
func TestNoRateMeansNoQueue(t *testing.T) {
	w := way(t, Options{Delay: time.Millisecond, MTU: 1500})
	for range 1000 {
		send(w, 1514, 0)
	}
	times, _ := drain(w)
	if len(times) != 1000 || times[999] != time.Millisecond {
		t.Errorf("%d packets, the last at %v", len(times), times[len(times)-1])
	}
}

func TestQueueDropsItsTail(t *testing.T) {
	w := way(t, Options{Rate: 1e9, Queue: 10 * 1538, MTU: 1500})
	for range 25 {
		send(w, 1514, 0)
	}
	if s := w.Stats(); s.Packets != 10 || s.Dropped != 15 || s.Queue < 110*us || s.Queue > 111*us {
		t.Errorf("%+v", s)
	}
	send(w, 1514, 124*us) // all have left
	if s := w.Stats(); s.Packets != 11 {
		t.Errorf("the queue is empty, and yet: %+v", s)
	}
}

func TestLossIsAsAskedAndRepeats(t *testing.T) {
	lost := func(seed uint64) uint64 {
		w := way(t, Options{Loss: 0.01, MTU: 1500, Seed: seed})
		for range 100000 {
			send(w, 64, 0)
			drain(w)
		}
		return w.Stats().Lost
	}
	one, again, other := lost(1), lost(1), lost(2)
	if one != again || one == other {
		t.Errorf("lost %d, with the same seed %d, with another one %d", one, again, other)
	}
	if sigma := math.Sqrt(100000 * 0.01 * 0.99); math.Abs(float64(one)-1000) > 4*sigma {
		t.Errorf("lost %d of 100000, want 1000 +- %.0f", one, 4*sigma)
	}
}

func TestBlackHoleTakesLargePackets(t *testing.T) {
	w := way(t, Options{BlackHole: 1400, MTU: 1500})
	send(w, 1415, 0)
	send(w, 1414, 0)
	if s := w.Stats(); s.Oversized != 1 || s.Packets != 1 {
		t.Errorf("%+v", s)
	}
}

func TestCutDropsAllPackets(t *testing.T) {
	w := way(t, Options{Delay: time.Millisecond, MTU: 1500})
	send(w, 100, 0)
	w.Cut(time.Second)
	send(w, 101, 500*us)
	send(w, 102, time.Second)
	if times, lengths := drain(w); len(times) != 2 || lengths[0] != 100 || lengths[1] != 102 || w.Stats().Cut != 1 {
		t.Errorf("%v %v %+v", times, lengths, w.Stats())
	}
}

// TestChangeKeepsOrder checks that packets do not overtake others after the delay has become
// shorter.
func TestChangeKeepsOrder(t *testing.T) {
	w := way(t, Options{Delay: 50 * time.Millisecond, MTU: 1500})
	send(w, 100, 0)
	if err := w.Change(Options{Delay: time.Millisecond, MTU: 1500}); err != nil {
		t.Fatal(err)
	}
	send(w, 101, time.Millisecond)
	if times, lengths := drain(w); lengths[0] != 100 || times[1] != 50*time.Millisecond {
		t.Errorf("%v %v", times, lengths)
	}
	if err := w.Change(Options{Rate: 1e9, Delay: time.Second, MTU: 1500}); err == nil ||
		!strings.Contains(err.Error(), "memory") {
		t.Errorf("more memory than there is: %v", err)
	}
	if err := w.Change(Options{MTU: 1400}); err == nil {
		t.Error("another mtu was taken")
	}
}

// TestRingReportsWhenItIsFull uses the ring for long, with frames of all lengths, and checks that
// nothing is mixed up, and that a full ring reports that and takes frames again after some have
// left.
func TestRingReportsWhenItIsFull(t *testing.T) {
	w := way(t, Options{Delay: time.Millisecond, Rate: 1e9, MTU: 1500})
	w.ring = make([]byte, 5*MaxFrame)
	w.take(Options{Delay: time.Millisecond, MTU: 1500})
	var sent, got [][]byte
	full := 0
	for i := range 20000 {
		b := w.Room()
		if b == nil {
			full++
			for w.n > 0 && (i%3 == 0 || w.n > 2) {
				due, _ := w.Next()
				head, _ := w.Take(due)
				got = append(got, bytes.Clone(head))
			}
			continue
		}
		n := HeaderBytes + 60 + i*7919%60000
		clear(b[:n])
		binary.BigEndian.PutUint32(b[HeaderBytes:], uint32(i))
		b[n-1] = byte(i)
		sent = append(sent, bytes.Clone(b[:n]))
		w.Offer(n, 0)
	}
	for w.n > 0 {
		due, _ := w.Next()
		head, _ := w.Take(due)
		got = append(got, bytes.Clone(head))
	}
	if full < 100 || len(got) != len(sent) {
		t.Fatalf("full %d times; %d frames of %d", full, len(got), len(sent))
	}
	for i := range sent {
		if !bytes.Equal(sent[i], got[i]) {
			t.Fatalf("frame %d has changed", i)
		}
	}
}

func TestLateness(t *testing.T) {
	w := way(t, Options{Delay: time.Millisecond, MTU: 1500})
	for i := range 100 {
		send(w, 60, 0)
		late := 10 * us
		if i == 99 {
			late = 9 * time.Millisecond
		}
		w.Take(time.Millisecond + late)
	}
	s := w.Stats()
	if s.LateMedian < 10*us || s.LateMedian > 12*us || s.LateMax != 9*time.Millisecond {
		t.Errorf("%+v", s)
	}
	if why := s.Void(20 * time.Millisecond); !strings.Contains(why, "9ms late") {
		t.Errorf("void because %q", why)
	}
	w.Reset()
	send(w, 60, 0)
	w.Take(time.Millisecond)
	if s := w.Stats(); s.Packets != 1 || s.Void(20*time.Millisecond) != "" {
		t.Errorf("%+v: %s", s, s.Void(20*time.Millisecond))
	}
}

func TestLatenessClasses(t *testing.T) {
	for v := uint64(0); v < 1<<20; v += 1 + v/64 {
		if c := class(v); top(c) < v || c > 0 && top(c-1) >= v || float64(top(c)) > 1.125*float64(v)+1 {
			t.Fatalf("%d is in class %d, which ends at %d", v, c, top(c))
		}
	}
	var l Lateness
	l.Add(math.MaxInt64, 1)
	l.Add(-1, 1)
	if l.Quantile(0.9) != math.MaxInt64 || l.Quantile(0) != 0 {
		t.Error(l.Quantile(0.9), l.Quantile(0))
	}
}

func TestLineOptionsAreChecked(t *testing.T) {
	for _, c := range []struct{ set, want string }{
		{"delay=20", "want a time"}, {"delay=-1ms", "delay -1ms: want 0 to 10s"}, {"delay=11s", "want 0 to 10s"},
		{"rate=fast", "want a rate"}, {"rate=1bit", "want 1kbit to 100gbit"}, {"rate=-1gbit", "want a rate"}, {"rate=NaNbit", "want a rate"},
		{"loss=2", "want 0 to 1"}, {"loss=101%", "want 0 to 1"}, {"loss=x", "want a share"}, {"loss=NaN", "want 0 to 1"},
		{"queue=100", "not one packet"}, {"queue=1.5", "want bytes"}, {"queue=3GB", "that takes"},
		{"rate=off queue=1MB", "give a rate"}, {"mtu=100", "mtu 100: want"}, {"mtu=70000", "mtu 70000: want"},
		{"blackhole=1500", "no packet is larger"}, {"seed=-1", "want a whole number"}, {"colour=red", "no option colour"},
		{"rate=100gbit delay=5s", "that takes"},
		{"delay=0", ""}, {"loss=0.01%", ""}, {"rate=off", ""}, {"queue=2MB", ""}, {"blackhole=1400", ""}, {"rate=10gbit delay=100ms", ""},
	} {
		o := Defaults()
		var err error
		for _, s := range strings.Fields(c.set) {
			name, value, _ := strings.Cut(s, "=")
			if err == nil {
				err = o.Set(name, value)
			}
		}
		if err == nil {
			err = o.Check()
		}
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: %v, want %q", c.set, err, c.want)
		}
	}
	for _, o := range []Options{Defaults(), {Delay: 1500 * us, Loss: 0.0001, Queue: 2_000_000, Rate: 123456, MTU: 9000,
		BlackHole: 1400, Seed: 7}, {MTU: 1500}} {
		var got Options
		for args := o.Args(); len(args) > 0; args = args[2:] {
			if err := got.Set(args[0][2:], args[1]); err != nil {
				t.Error(err)
			}
		}
		if got != o {
			t.Errorf("%v: %+v", o.Args(), got)
		}
	}
	if n, err := ParseBytes("2MB"); n != 2_000_000 || err != nil {
		t.Error(n, err)
	}
	if p, err := ParseShare("0.01%"); math.Abs(p-0.0001) > 1e-12 || err != nil {
		t.Error(p, err)
	}
	if r, err := ParseRate("2.5gbit"); r != 2_500_000_000 || err != nil {
		t.Error(r, err)
	}
}
