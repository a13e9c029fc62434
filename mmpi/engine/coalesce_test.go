package engine

import (
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/leidenzipper/zipper/internal/transport"
)

// TestCoalesceWritesGrowingBatches checks the numbers of the messages that coalesce does not hold.
func TestCoalesceWritesGrowingBatches(t *testing.T) {
	var h coalesce
	var out []int
	for i := 1; i <= 130; i++ {
		if !h.keep(8) {
			out = append(out, i)
		}
	}
	if want := []int{1, 2, 4, 8, 16, 32, 64, 96, 128}; !slices.Equal(out, want) {
		t.Errorf("written out at messages %d, want %d", out, want)
	}
	h.over()
	if h.keep(8) {
		t.Error("held the first message after a wait")
	}
	h.keep(8)
	for range 3 {
		if h.keep(coalesceBytes) {
			t.Errorf("held %d bytes", coalesceBytes)
		}
	}
}

// TestHeldMessagesArrive checks that a burst of messages arrives though the program makes no
// further call.
func TestHeldMessagesArrive(t *testing.T) {
	e, c := pairOf(t, false)
	const n = 7 // the 5th to 7th are held
	sent, got := make([]Cell, n), make([]Cell, n)
	for i := range sent {
		if err := e[0].Isend(c[0], KindP2P, []byte{byte(i)}, 1, i, false, &sent[i]); err != nil {
			t.Fatal(err)
		}
	}
	buf := make([]byte, n)
	for i := range got {
		if err := e[1].Irecv(c[1], KindP2P, buf[i:i+1], 0, i, &got[i]); err != nil {
			t.Fatal(err)
		}
	}
	end := time.Now().Add(20 * time.Second)
	for i := range got {
		for !got[i].Done() {
			if time.Now().After(end) {
				t.Fatalf("message %d does not arrive", i)
			}
			e[1].Progress(time.Millisecond)
		}
	}
	if !slices.Equal(buf, []byte{0, 1, 2, 3, 4, 5, 6}) {
		t.Errorf("got %v", buf)
	}
}

// writes is a link that counts its writes.
type writes struct {
	transport.Link
	n *atomic.Int32
}

func (w writes) TryWrite(bufs ...[]byte) (int, error) {
	w.n.Add(1)
	return w.Link.TryWrite(bufs...)
}

// TestReceivesKeepMessagesHeld checks that messages go out together also from a program that sends
// and receives by turns.
func TestReceivesKeepMessagesHeld(t *testing.T) {
	const n = 64
	var wrote atomic.Int32
	e, c := pairOf(t, false, func(rank int, cfg *Config) {
		if rank == 0 {
			cfg.Links[0] = writes{cfg.Links[0], &wrote}
		}
	})
	var sent, back, got [n]Cell
	var buf [n]byte
	before := wrote.Load()
	for i := range sent {
		if err := e[0].Irecv(c[0], KindP2P, buf[i:i+1], 1, i, &got[i]); err != nil {
			t.Fatal(err)
		}
		if err := e[0].Isend(c[0], KindP2P, []byte{byte(i)}, 1, i, false, &sent[i]); err != nil {
			t.Fatal(err)
		}
	}
	if k := wrote.Load() - before; k > n/2 { // 7, and one for each time that nothing ran for wait.FlushAfter
		t.Errorf("%d messages went out in %d writes", n, k)
	}
	for i := range got { // messages that have arrived are answered at once
		if err := e[1].Isend(c[1], KindP2P, []byte{1}, 0, i, false, &back[i]); err != nil {
			t.Fatal(err)
		}
	}
	e[1].Progress(0)
	for end := time.Now().Add(20 * time.Second); !got[n-1].Done(); e[0].Progress(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("the answers do not arrive")
		}
	}
}
