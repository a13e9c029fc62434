package demand

import (
	"testing"
	"time"

	"github.com/leidenzipper/zipper/mmpi/engine/limits"
)

const firstPause = limits.DefaultDirectPause

// exchange counts frames of n bytes until the pair has exchanged enough, and returns their number.
func exchange(p *Pair, n int) (frames int) {
	for frames = 1; !p.Relayed(n, limits.DefaultDirectAfter); frames++ {
	}
	return frames
}

// TestRequestComesAfterEnoughTraffic checks that a few hundred messages, or a few megabytes, lead
// to a request.
func TestRequestComesAfterEnoughTraffic(t *testing.T) {
	for _, c := range []struct{ size, least, most int }{{8, 200, 300}, {128 << 10, 10, 20}, {1 << 20, 2, 2}} {
		if n := exchange(new(Pair), c.size); n < c.least || n > c.most {
			t.Errorf("%d frames of %d bytes, want %d to %d", n, c.size, c.least, c.most)
		}
	}
}

// TestPausesGrow checks that a pair without a link asks less and less often, and that a link which
// has lasted begins again, but one that has not does not.
func TestPausesGrow(t *testing.T) {
	var p Pair
	now, last := time.Duration(0), time.Duration(0)
	for i := range 12 {
		exchange(&p, 8)
		if !p.Request(now, firstPause, 1, 2) {
			t.Fatalf("request %d is refused", i)
		}
		if p.weight != 0 {
			t.Error("the weight remains")
		}
		pause := p.next - now
		if pause < last || pause > maxPause {
			t.Errorf("a pause of %v after one of %v", pause, last)
		}
		if p.Request(p.next-1, firstPause, 1, 2) {
			t.Error("asked within the pause")
		}
		last, now = pause, p.next
	}
	if last < maxPause/2 || last > maxPause {
		t.Errorf("the last pause is %v", last)
	}
	now-- // within the last pause
	p.Up(now - lasting + 1)
	p.Down(now)
	if p.Request(now, firstPause, 1, 2) {
		t.Error("a link that has not lasted ends the pause")
	}
	p.Up(now - lasting)
	p.Down(now)
	if !p.Request(now, firstPause, 1, 2) || p.pause != firstPause {
		t.Errorf("after a link that has lasted: a pause of %v", p.pause)
	}
}

// TestIdleLinksMayClose checks that only a link without new frames becomes idle.
func TestIdleLinksMayClose(t *testing.T) {
	var u Use
	u.Begin(5)
	u.Look(5+idleLong, 1)
	if MayClose(u.Idle(5 + idleLong)) {
		t.Error("a link in use may be closed")
	}
	u.Look(5+2*idleLong, 1)
	if !MayClose(u.Idle(5 + 2*idleLong)) {
		t.Error("an idle link may not be closed")
	}
}

// TestPausesOfPairsDiffer checks that pairs of a large job that ask for links at the same time do
// not ask again at the same time: of all pairs of 32 + 32 ranks, at most twice their share ask
// within any 64th of the time.
func TestPausesOfPairsDiffer(t *testing.T) {
	var slots [64]int
	for mine := range 32 {
		for peer := 32; peer < 64; peer++ {
			var p Pair
			if !p.Request(0, firstPause, mine, peer) {
				t.Fatal("refused")
			}
			if p.next < firstPause/2 || p.next > firstPause {
				t.Fatalf("a pause of %v", p.next)
			}
			slots[min(int((p.next-firstPause/2)*64/(firstPause/2)), 63)]++
		}
	}
	for i, n := range slots {
		if n > 2*32*32/64 {
			t.Errorf("%d pairs ask in part %d", n, i)
		}
	}
}
