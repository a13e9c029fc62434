package kernel

import (
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// TestOrder checks that small packets stay in order, on a line with a burst and on a way without
// lines.
func TestOrder(t *testing.T) {
	for seed := range uint64(20) {
		k := New(seed)
		way := &Way{Packet: 1000, Window: 100_000, Unsent: 100_000, Delay: time.Microsecond}
		if seed%2 == 0 {
			way.Lines = []Passage{{k.Line("line", 1e6, 16<<10), "k"}}
		}
		x, y := k.Process("x"), k.Process("y")
		a, b := x.Connect(y, Path{Out: way, In: &Way{Packet: 1000, Window: 1000}})
		x.Go(func() {
			for i := range 100 {
				if _, err := a.TryWrite([]byte{byte(i)}); err != nil {
					t.Error(err)
				}
				if i%7 == 0 {
					k.Sleep(time.Millisecond)
				} else if i%2 == 0 {
					k.Sleep(0)
				}
			}
			a.Close()
		})
		var got []byte
		y.Go(func() {
			buf := make([]byte, 10)
			for {
				n, err := b.TryRead(buf)
				got = append(got, buf[:n]...)
				switch {
				case err == nil:
				case b.in.eof:
					return
				default:
					k.poll([]unix.PollFd{{Fd: int32(b.FD()), Events: unix.POLLIN}}, time.Second)
				}
			}
		})
		k.Run(func() bool { return false })
		for i := range 100 {
			if i >= len(got) || got[i] != byte(i) {
				t.Fatalf("seed %d: %d bytes came: %v", seed, len(got), got)
			}
		}
	}
}
