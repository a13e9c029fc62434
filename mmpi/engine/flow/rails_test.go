package flow

import (
	"math/rand/v2"
	"testing"
	"time"
)

// TestCover compares a Cover with a plain bitmap for any ranges in any order.
func TestCover(t *testing.T) {
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 1))
		const size = 60
		var c Cover
		var landed [size]bool
		for total := int64(0); total < size; {
			from := r.IntN(size)
			to := from + 1 + r.IntN(min(12, size-from))
			want := int64(0)
			for i := from; i < to; i++ {
				if !landed[i] {
					want++
				}
			}
			if got := c.Fresh(int64(from), int64(to)); got != want {
				t.Fatalf("seed %d: %d fresh bytes in %d..%d, want %d (%+v)", seed, got, from, to, want, c)
			}
			got, err := c.Add(int64(from), int64(to))
			if err != nil || got != want {
				t.Fatalf("seed %d: added %d, %v; want %d", seed, got, err, want)
			}
			for i := from; i < to; i++ {
				landed[i] = true
			}
			total += want
			for i := range c.ahead {
				if i == 0 && c.ahead[0].from <= c.front || i > 0 && c.ahead[i].from <= c.ahead[i-1].to {
					t.Fatalf("seed %d: spans touch: %+v", seed, c)
				}
			}
		}
		if c.front != size || len(c.ahead) != 0 {
			t.Fatalf("seed %d: all is there, but %+v", seed, c)
		}
	}
}

func TestCoverBounded(t *testing.T) {
	var c Cover
	for i := range int64(maxSpans) {
		if _, err := c.Add(2*i+1, 2*i+2); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := c.Add(2*maxSpans+1, 2*maxSpans+2); err != ErrScattered {
		t.Fatalf("%v", err)
	}
}

// TestLane checks that exactly the unacknowledged segments are returned when a lane is lost, and
// that old acknowledgements change nothing afterwards.
func TestLane(t *testing.T) {
	l := NewLane()
	for i := range 5 {
		l.Send(Segment{Request: 7, Offset: int64(i * 100), Bytes: 100}, 0)
	}
	if err := l.Landed(1, 250, time.Millisecond*10); err != nil || l.InFlight() != 250 {
		t.Fatalf("%v, %d on the way", err, l.InFlight())
	}
	if err := l.Landed(1, 501, 0); err == nil {
		t.Fatal("more landed than was sent")
	}
	if l.Rate() != 25000 {
		t.Errorf("250 bytes in 10 ms: %v bytes/s", l.Rate())
	}
	lost := l.Reset()
	if len(lost) != 3 || lost[0].Offset != 200 || lost[2].Offset != 400 {
		t.Fatalf("to replay: %+v", lost)
	}
	if l.Epoch() != 2 || l.InFlight() != 0 {
		t.Fatalf("epoch %d, %d on the way", l.Epoch(), l.InFlight())
	}
	l.Send(Segment{Bytes: 10}, 0)
	if err := l.Landed(1, 300, 0); err != nil || l.InFlight() != 10 {
		t.Fatalf("an acknowledgement of the epoch before: %v, %d", err, l.InFlight())
	}
	if err := l.Landed(2, 10, 0); err != nil || l.InFlight() != 0 {
		t.Fatalf("%v, %d", err, l.InFlight())
	}
}

func TestArrivals(t *testing.T) {
	var a Arrivals
	count := func(epoch uint16, place uint64, bytes int) {
		t.Helper()
		if err := a.Count(epoch, place, bytes); err != nil {
			t.Fatal(err)
		}
	}
	count(1, 0, 100)
	count(1, 100, 50)
	if e, n := a.Tell(); e != 1 || n != 150 || a.Unacknowledged() != 0 {
		t.Fatal(e, n)
	}
	count(1, 250, 50) // it has overtaken the one before, which may still be lost
	if e, n := a.Tell(); e != 1 || n != 150 {
		t.Fatal(e, n)
	}
	count(1, 150, 100)
	if n := a.Unacknowledged(); n != 150 {
		t.Fatal(n, "bytes untold after the gap is filled")
	}
	count(2, 0, 10) // the sender has begun a new epoch
	if e, n := a.Tell(); e != 2 || n != 10 {
		t.Fatal(e, n)
	}
	count(1, 300, 50) // a late segment that the sender has sent again
	if e, n := a.Tell(); e != 2 || n != 10 {
		t.Fatal(e, n)
	}
	if a.Count(2, 1<<63, 10) == nil {
		t.Error("no such place")
	}
}

// TestLaneOvertaken checks that the segments replayed after a loss include all that are lost, for
// any order of arrival.
func TestLaneOvertaken(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		type sent struct {
			place uint64
			s     Segment
		}
		l := NewLane()
		var way []sent
		for i := range 20 {
			s := Segment{Request: uint64(i), Bytes: 1 + rnd.IntN(9)}
			l.Send(s, 0)
			way = append(way, sent{l.Place(), s})
		}
		rnd.Shuffle(len(way), func(i, k int) { way[i], way[k] = way[k], way[i] })
		var a Arrivals
		came := map[uint64]bool{}
		for _, x := range way[:rnd.IntN(len(way)+1)] {
			if err := a.Count(1, x.place, x.s.Bytes); err != nil {
				t.Fatal(err)
			}
			came[x.s.Request] = true
			if rnd.IntN(2) == 0 {
				e, n := a.Tell()
				if err := l.Landed(e, n, 0); err != nil {
					t.Fatal(err)
				}
			}
		}
		for _, s := range l.Reset() {
			came[s.Request] = true
		}
		if len(came) != len(way) {
			t.Fatalf("of %d segments %d came or are replayed", len(way), len(came))
		}
	}
}

func TestShare(t *testing.T) {
	fast, slow, fresh := Lane{pace: Pace{rate: 300}}, Lane{pace: Pace{rate: 100}}, Lane{}
	both := []*Lane{&fast, &slow}
	if a, b := Share(400, &fast, both), Share(400, &slow, both); a != 300 || b != 100 {
		t.Errorf("300:100 shares 400 as %d:%d", a, b)
	}
	if n := Share(600, &fresh, []*Lane{&fast, &slow, &fresh}); n != 200 {
		t.Errorf("an unknown one counts as the mean: %d", n)
	}
	if n := Share(100, &fresh, []*Lane{&fresh, {}}); n != 50 {
		t.Errorf("nothing known: %d", n)
	}
}
