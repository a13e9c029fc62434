package forwarder

import (
	"context"
	"encoding/binary"
	"fmt"
	"os"
	"strconv"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/leidenzipper/zipper/internal/dial"
	"github.com/leidenzipper/zipper/internal/transport"
	"github.com/leidenzipper/zipper/internal/transport/tcp"
	"github.com/leidenzipper/zipper/internal/wire"
)

// pairUp starts a forwarder with one loop and a read buffer of a number of bytes (0: the default),
// and joins one rank in each of two clusters. It returns the links by virtual rank.
func pairUp(b *testing.B, readBuffer int) (links [2]transport.Link) {
	ln, err := tcp.Listen("127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	f, err := New(Config{Listeners: []transport.Listener{ln}, Loops: 1, ReadBuffer: readBuffer, FlowLimit: 1 << 32})
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
			l, where, err := new(dial.Dialer).Dial(context.Background(), ln.Addr(),
				identity("bench", c.Name, 0, layout...))
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

// BenchmarkPingPong measures a round trip through a forwarder on the loopback device; the ends
// sleep in poll.
func BenchmarkPingPong(b *testing.B) {
	for _, size := range []int{8, 4096, 65536} {
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			l := pairUp(b, 0)
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

// BenchmarkStream measures one direction at full speed, in segments.
func BenchmarkStream(b *testing.B) {
	for _, size := range []int{8, 4096, 16384, 32768, 65536, 131072} {
		b.Run(fmt.Sprint(size), func(b *testing.B) { stream(b, pairUp(b, 0), size) })
	}
}

// BenchmarkReadBuffer measures the same for several sizes of the forwarder's read buffer. It
// reports the processor time of sender, forwarder and receiver together, and their cache misses if
// the machine counts them. The thesis attributed its dips at 32 and 256 KiB to cache misses.
func BenchmarkReadBuffer(b *testing.B) {
	for _, size := range []int{4096, 32768, 98304, 131072} {
		for _, kib := range []int{16, 32, 64, 128, 192, 260, 390, 520, 1040, 4096} {
			b.Run(fmt.Sprintf("%d/%dKiB", size, kib), func(b *testing.B) {
				misses := cacheMisses(b)
				links := pairUp(b, kib<<10)
				stream(b, links, size) // warm
				used, missed := processorTime(b), misses.sum(b)
				stream(b, links, size)
				mib := float64(b.N) * float64(size) / (1 << 20)
				b.ReportMetric(float64(processorTime(b)-used)/1e3/mib, "cpu-us/MiB")
				if len(misses) > 0 {
					b.ReportMetric(float64(misses.sum(b)-missed)/mib, "cache-misses/MiB")
				}
			})
		}
	}
}

func processorTime(b *testing.B) time.Duration {
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// hardware has hardware counters, one for each thread including the threads that it starts later.
// It is empty on machines without counters, as most virtual ones.
type hardware []*os.File

func cacheMisses(b *testing.B) (all hardware) {
	threads, err := os.ReadDir("/proc/self/task")
	if err != nil {
		b.Fatal(err)
	}
	attr := unix.PerfEventAttr{Type: unix.PERF_TYPE_HARDWARE, Config: unix.PERF_COUNT_HW_CACHE_MISSES,
		Bits: unix.PerfBitInherit | unix.PerfBitExcludeHv}
	attr.Size = uint32(unsafe.Sizeof(attr))
	for _, t := range threads {
		id, _ := strconv.Atoi(t.Name())
		fd, err := unix.PerfEventOpen(&attr, id, -1, -1, unix.PERF_FLAG_FD_CLOEXEC)
		if err != nil {
			return all
		}
		f := os.NewFile(uintptr(fd), "cache misses")
		b.Cleanup(func() { f.Close() })
		all = append(all, f)
	}
	return all
}

func (c hardware) sum(b *testing.B) (n uint64) {
	var v [8]byte
	for _, f := range c {
		if _, err := f.Read(v[:]); err != nil {
			b.Fatal(err)
		}
		n += binary.NativeEndian.Uint64(v[:])
	}
	return n
}

// stream sends b.N frames of a size in bytes from the first link to the second.
func stream(b *testing.B, l [2]transport.Link, size int) {
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
}
