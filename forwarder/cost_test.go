package forwarder

import (
	"runtime"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/leidenzipper/zipper/internal/transport"
	"github.com/leidenzipper/zipper/internal/wire"
)

// relayed performs one round trip of a message without allocating itself.
func relayed(tb testing.TB, a, b transport.Link, there, back [][]byte, p []byte) {
	move := func(from, to transport.Link, vec [][]byte) {
		if n, err := from.TryWrite(vec...); n != len(vec[0]) || err != nil {
			tb.Fatal(n, err)
		}
		for got := 0; got < len(vec[0]); {
			n, err := to.TryRead(p)
			if err == transport.ErrAgain {
				if err := await(to.FD(), unix.POLLIN); err != nil {
					tb.Fatal(err)
				}
				continue
			}
			if err != nil {
				tb.Fatal(err)
			}
			got += n
		}
	}
	move(a, b, there)
	move(b, a, back)
}

// TestNoAllocationPerMessage checks that relaying allocates no memory for messages of any size once
// buffers exist.
func TestNoAllocationPerMessage(t *testing.T) {
	b := start(t, tcpNetwork(), nil)
	r := b.join("j", twoClusters...)
	for _, size := range []int{8, 40_000} {
		there, back := [][]byte{eager(0, 2, 1, make([]byte, size))}, [][]byte{eager(2, 0, 1, make([]byte, size))}
		p := make([]byte, 1<<16)
		// The count is that of the whole process. Other parts may allocate now and then; a relay
		// that allocates would do so for each message.
		const messages = 200
		if n := testing.AllocsPerRun(messages/2, func() { relayed(t, r[0].link, r[2].link, there, back, p) }); n > 0 {
			t.Errorf("%d bytes: %v allocations for two messages", size, n)
		}
	}
}

// TestMemoryPerIdleLink checks that an idle link holds little memory after traffic with partial
// frames and queues.
func TestMemoryPerIdleLink(t *testing.T) {
	const links, limit = 400, 16 << 10 // both ends of each link, with their layouts, are in this process
	b := start(t, tcpNetwork(), nil)
	heap := func() int64 {
		runtime.GC()
		runtime.GC() // memory that pools release in the first cycle is free after the second
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	before := heap()
	r := b.join("j", wire.Cluster{Name: "a", Size: links / 2}, wire.Cluster{Name: "b", Size: links / 2})
	for i := range links / 2 {
		for k := range 3 {
			r[i].send(data(i, links/2+i, uint64(k), make([]byte, 70_000)))
		}
		for range 3 {
			r[links/2+i].expect(wire.TypeData)
		}
	}
	if per := (heap() - before) / links; per > limit {
		t.Errorf("%d bytes for an idle link, want at most %d", per, limit)
	} else {
		t.Logf("%d bytes for an idle link", per)
	}
	runtime.KeepAlive(r)
}

// TestFairness checks that sources that send to one destination as fast as possible get equal
// shares (Jain's index).
func TestFairness(t *testing.T) {
	const sources, size = 8, 30_000
	b := start(t, tcpNetwork(), func(c *Config) { c.FlowLimit = 1 << 40 })
	r := b.join("j", wire.Cluster{Name: "a", Size: sources}, wire.Cluster{Name: "b", Size: 1})
	stop := make(chan struct{})
	done := make(chan bool, sources)
	// This window stands for credit: at most 8 frames of a source are in flight.
	credit := make([]chan bool, sources)
	for i := range sources {
		credit[i] = make(chan bool, 1<<16)
		for range 8 {
			credit[i] <- true
		}
		go func() {
			f := data(i, sources, 0, make([]byte, size))
			for {
				select {
				case <-stop:
					done <- true
					return
				case <-credit[i]:
				}
				if r[i].write(f) != nil {
					done <- true
					return
				}
			}
		}()
	}
	var got [sources]float64
	for range 4000 {
		h, _ := r[sources].expect(wire.TypeData)
		got[h.Src]++
		credit[h.Src] <- true
	}
	close(stop)
	for range sources {
		<-done
	}
	sum, squares := 0.0, 0.0
	for _, g := range got {
		sum += g
		squares += g * g
	}
	if jain := sum * sum / (sources * squares); jain < 0.95 {
		t.Errorf("Jain's index %.3f for %v", jain, got)
	}
}
