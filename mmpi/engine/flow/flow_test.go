package flow

import (
	"errors"
	"math/rand/v2"
	"testing"
)

// TestCreditRandom checks that a sender within its budget never overruns, never gets a window wider
// than granted, and is never stopped for ever.
func TestCreditRandom(t *testing.T) {
	for seed := range uint64(50) {
		r := rand.New(rand.NewPCG(seed, 1))
		const window = 1000
		b, g := NewBudget(window), NewGrant(window)
		var wire []uint64 // sizes in flight
		sent, consumed := uint64(0), uint64(0)
		for range 2000 {
			switch r.IntN(4) {
			case 0:
				n := r.Uint64N(300)
				if b.Take(n) {
					wire = append(wire, n)
					sent += n
				}
			case 1:
				if len(wire) > 0 {
					if err := g.Receive(wire[0]); err != nil {
						t.Fatalf("seed %d: %v", seed, err)
					}
					wire = wire[1:]
				}
			case 2:
				n := r.Uint64N(g.Waiting() + 1)
				g.Consume(n)
				consumed += n
			case 3:
				if g.Due(seed%2 == 0) {
					b.Raise(g.Limit())
				}
			}
			if sent-consumed > g.Window() {
				t.Fatalf("seed %d: %d unconsumed in a window of %d", seed, sent-consumed, g.Window())
			}
		}
		for _, n := range wire {
			if err := g.Receive(n); err != nil {
				t.Fatal(err)
			}
		}
		g.Consume(g.Waiting())
		if g.CreditDue() {
			b.Raise(g.Limit())
		}
		if b.Available() != window {
			t.Fatalf("seed %d: %d left of %d after all is consumed", seed, b.Available(), window)
		}
	}
}

func TestCreditOverrunAndGrow(t *testing.T) {
	g := NewGrant(100)
	if err := g.Receive(100); err != nil {
		t.Fatal(err)
	}
	if err := g.Receive(1); !errors.Is(err, ErrOverrun) {
		t.Fatalf("got %v, want ErrOverrun", err)
	}
	g.Grow(50)
	if !g.Due(false) || g.Limit() != 150 {
		t.Fatalf("limit %d after growing to 150", g.Limit())
	}
	b := NewBudget(100)
	if b.Raise(99) || !b.Raise(150) || b.Available() != 150 {
		t.Fatal("an old limit changed the budget, or a new one did not")
	}
}

func TestNumbers(t *testing.T) {
	var n Numbers
	for want := uint64(1); want <= 3; want++ {
		if got := n.Next(); got != want {
			t.Fatalf("number %d, want %d", got, want)
		}
	}
	for _, c := range []struct {
		ack  uint64
		news bool
		err  error
		left uint64
	}{{0, false, nil, 3}, {2, true, nil, 1}, {1, false, nil, 1}, {4, false, ErrSequence, 1}, {3, true, nil, 0}} {
		news, err := n.Ack(c.ack)
		if news != c.news || !errors.Is(err, c.err) || n.Unacked() != c.left {
			t.Fatalf("ack %d: %v, %v, %d left", c.ack, news, err, n.Unacked())
		}
	}
}

// TestOrderRandom checks that frames in any order with duplicates are handled once each, in order.
func TestOrderRandom(t *testing.T) {
	for seed := range uint64(50) {
		r := rand.New(rand.NewPCG(seed, 2))
		var arrivals []uint64
		for i := range uint64(100) {
			arrivals = append(arrivals, i+1)
			if r.IntN(3) == 0 {
				arrivals = append(arrivals, i+1)
			}
		}
		r.Shuffle(len(arrivals), func(i, j int) { arrivals[i], arrivals[j] = arrivals[j], arrivals[i] })
		var o Order[uint64]
		next := uint64(1)
		handle := func(seq uint64) {
			if seq != next {
				t.Fatalf("seed %d: handled %d, want %d", seed, seq, next)
			}
			next++
			o.Take()
		}
		for _, a := range arrivals {
			p, err := o.Place(a)
			if err != nil {
				t.Fatal(err)
			}
			switch p {
			case Next:
				handle(a)
				for {
					f, ok := o.Pop()
					if !ok {
						break
					}
					handle(f)
				}
			case Early:
				o.Keep(a, a)
			}
		}
		if next != 101 || o.Unacknowledged() != 100 || o.Ack() != 100 || o.Unacknowledged() != 0 {
			t.Fatalf("seed %d: ended at %d", seed, next)
		}
		for _, bad := range []uint64{0, 101 + MaxEarly, 1 << 63} {
			if _, err := o.Place(bad); !errors.Is(err, ErrSequence) {
				t.Fatalf("place of %d: %v", bad, err)
			}
		}
	}
}
