package kernel

import (
	"testing"
	"time"
)

// TestCutStalled checks that a connection which is cut while one direction is stalled loses the
// bytes in flight, also after the stall is over.
func TestCutStalled(t *testing.T) {
	k := New(1)
	x, y := k.Process("x"), k.Process("y")
	a, b := x.Connect(y, Path{Delay: time.Millisecond, Buffer: 100})
	write := func(s string) {
		if _, err := a.TryWrite([]byte(s)); err != nil {
			t.Error(err)
		}
	}
	x.Go(func() {
		write("lost")
		a.Stall(5 * time.Millisecond)
		a.Cut(50*time.Millisecond, 50*time.Millisecond)
		write("behind it")
		k.Sleep(20 * time.Millisecond)
		if n := len(b.in.here); n > 0 {
			t.Errorf("%d bytes arrived over a connection that is cut", n)
		}
	})
	k.Run(func() bool { return false })
	if b.dead == nil {
		t.Error("the reader got no error of the connection that is cut")
	}
}
