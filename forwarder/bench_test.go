package forwarder

import (
	"context"
	"fmt"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/leidenzipper/zipper/rail"
	"github.com/leidenzipper/zipper/transport"
	"github.com/leidenzipper/zipper/transport/tcp"
	"github.com/leidenzipper/zipper/wire"
)

// pairUp starts a forwarder with one loop and joins one rank in each of two clusters; links are by virtual rank.
func pairUp(b *testing.B) (links [2]transport.Link) {
	ln, err := tcp.Listen("127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	f, err := New(Config{Listeners: []transport.Listener{ln}, Loops: 1, FlowLimit: 1 << 32})
	if err != nil {
		b.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- f.Serve(ctx) }()
	layout := []wire.Cluster{{Name: "a", Size: 1}, {Name: "b", Size: 1}}
	errs := make(chan error)
	for _, c := range layout {
		go func() {
			l, where, err := new(rail.Dialer).Dial(context.Background(), ln.Addr(), identity("bench", c.Name, 0, layout...))
			if err == nil {
				links[where.Rank] = l
			}
			errs <- err
		}()
	}
	for range links {
		if err := <-errs; err != nil {
			b.Fatal(err)
		}
	}
	b.Cleanup(func() {
		links[0].Close()
		links[1].Close()
		cancel()
		<-served
	})
	return links
}

// BenchmarkPingPong is a message there and back through a forwarder, on the loopback device; the ends sleep in poll.
func BenchmarkPingPong(b *testing.B) {
	for _, size := range []int{8, 4096, 65536} {
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			l := pairUp(b)
			p := make([]byte, 1<<17)
			there, back := [][]byte{eager(0, 1, 1, make([]byte, size))}, [][]byte{eager(1, 0, 1, make([]byte, size))}
			b.SetBytes(2 * int64(size))
			b.ReportAllocs()
			for b.Loop() {
				relayed(b, l[0], l[1], there, back, p)
			}
		})
	}
}

// BenchmarkStream is one direction at full speed, in segments.
func BenchmarkStream(b *testing.B) {
	for _, size := range []int{8, 4096, 16384, 32768, 65536, 131072} {
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			l := pairUp(b)
			frame := data(0, 1, 0, make([]byte, size))
			done := make(chan error, 1)
			total := b.N * len(frame)
			go func() {
				p := make([]byte, 1<<18)
				for got := 0; got < total; {
					n, err := l[1].TryRead(p)
					if err == transport.ErrAgain {
						err = await(l[1].FD(), unix.POLLIN)
					}
					if err != nil {
						done <- err
						return
					}
					got += n
				}
				done <- nil
			}()
			b.SetBytes(int64(size))
			b.ResetTimer()
			w := rank{link: l[0]}
			// Many frames with one write, as an engine under load does.
			batch := frame
			for len(batch) < 128<<10 {
				batch = append(batch, frame...)
			}
			for left := total; left > 0; {
				n := min(left, len(batch))
				if err := w.write(batch[:n]); err != nil {
					b.Fatal(err)
				}
				left -= n
			}
			if err := <-done; err != nil {
				b.Fatal(err)
			}
		})
	}
}
