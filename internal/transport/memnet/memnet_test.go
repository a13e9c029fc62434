package memnet

import (
	"io"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leidenzipper/zipper/internal/transport"
	"github.com/leidenzipper/zipper/internal/transport/transporttest"
)

func TestConformance(t *testing.T) {
	for name, opt := range map[string]Options{
		"plain":   {},
		"partial": {Partial: 42, Buffer: 20000},
		"pieces":  {Pieces: 3, Partial: 11},
		"delay":   {Delay: 50 * time.Microsecond},
	} {
		t.Run(name, func(t *testing.T) {
			can := transporttest.Capability(0)
			if opt.Pieces > 0 {
				can = transporttest.Lender
			}
			transporttest.Run(t, transporttest.Setup{Can: can,
				Allocates: "memnet is for tests and takes memory for what is on its way",
				Open: func(t *testing.T) (transport.Listener, transport.Dialer) {
					n := New(opt)
					ln, err := n.Listen("here")
					if err != nil {
						t.Fatal(err)
					}
					return ln, n
				}})
		})
	}
}

func TestDelayIsExact(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := Pipe(Options{Delay: time.Second})
		start := time.Now()
		a.TryWrite([]byte("x"))
		time.Sleep(300 * time.Millisecond) // by the bubble's clock
		a.TryWrite([]byte("y"))
		a.Close()
		for _, want := range []time.Duration{time.Second, 1300 * time.Millisecond} {
			b.WaitRead()
			if n, err := b.TryRead(make([]byte, 10)); n != 1 || err != nil || time.Since(start) != want {
				t.Errorf("%d, %v after %v, want %v", n, err, time.Since(start), want)
			}
		}
		b.WaitRead()
		if _, err := b.TryRead(make([]byte, 1)); err != io.EOF || time.Since(start) != 1300*time.Millisecond {
			t.Errorf("end: %v after %v", err, time.Since(start))
		}
	})
}

func TestCut(t *testing.T) {
	a, b := Pipe(Options{})
	a.TryWrite([]byte("lost"))
	b.Cut()
	for _, l := range []*Link{a, b} {
		if _, err := l.TryRead(make([]byte, 1)); err != ErrCut {
			t.Errorf("read: %v", err)
		}
		if _, err := l.TryWrite([]byte{1}); err != ErrCut {
			t.Errorf("write: %v", err)
		}
		l.WaitRead() // both return at once
		l.WaitWrite()
	}
}

func TestHold(t *testing.T) {
	a, b := Pipe(Options{Buffer: 3})
	a.Hold(true)
	a.TryWrite([]byte("ab"))
	if _, err := b.TryRead(make([]byte, 9)); err != transport.ErrAgain {
		t.Errorf("held, but read gives %v", err)
	}
	if n, err := a.TryWrite([]byte("cd")); n != 1 || err != nil {
		t.Errorf("%d, %v: held bytes count for the buffer", n, err)
	}
	a.Hold(false)
	p := make([]byte, 9)
	if n, err := b.TryRead(p); string(p[:n]) != "abc" || err != nil {
		t.Errorf("got %q, %v", p[:n], err)
	}
}

// TestSameSeedSameSizes checks that a scenario can be repeated.
func TestSameSeedSameSizes(t *testing.T) {
	play := func(seed uint64) (sizes []int) {
		a, b := Pipe(Options{Partial: seed})
		for range 20 {
			n, _ := a.TryWrite(make([]byte, 500))
			m, _ := b.TryRead(make([]byte, 400))
			sizes = append(sizes, n, m)
		}
		return sizes
	}
	if !slices.Equal(play(1), play(1)) || slices.Equal(play(1), play(2)) {
		t.Error("sizes do not follow from the seed alone")
	}
}
