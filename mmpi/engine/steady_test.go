package engine

import (
	"context"
	"encoding/binary"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/leidenzipper/zipper/collectives"
	"github.com/leidenzipper/zipper/internal/transport"
	"github.com/leidenzipper/zipper/internal/transport/tcp"
	"github.com/leidenzipper/zipper/internal/wire"
)

// pairOf joins two engines by one socket, without a forwarder between them and, if quiet, without
// background threads.
func pairOf(t testing.TB, quiet bool, change ...func(rank int, cfg *Config)) (e [2]*Engine, c [2]*Comm) {
	ln, err := tcp.Listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	a, err := tcp.Dialer{}.Dial(ctx, ln.Addr())
	if err != nil {
		t.Fatal(err)
	}
	b, err := ln.Accept()
	if err != nil {
		t.Fatal(err)
	}
	for i, l := range []transport.Link{a, b} {
		limits := Limits{}
		if quiet {
			limits.LongPath = -1
		}
		w := World{Rank: i, Clusters: []wire.Cluster{{Name: "a", Size: 1}, {Name: "b", Size: 1}}, TagUB: 1 << 20}
		cfg := Config{World: w, Native: &fakeNative{board: &board{}, first: i}, Wiring: Wiring{Links: []transport.Link{l}},
			Quiet: quiet, Limits: limits}
		for _, f := range change {
			f(i, &cfg)
		}
		if e[i], err = New(cfg); err != nil {
			t.Fatal(err)
		}
		c[i] = spanAll(t, e[i])
		t.Cleanup(e[i].close)
	}
	return e, c
}

// cross sends buf from one to the other and waits for it at both ends.
func cross(t testing.TB, e [2]*Engine, c [2]*Comm, from int, send, recv []byte, cells *[2]Cell) {
	to := 1 - from
	cells[0], cells[1] = Cell{}, Cell{}
	if err := e[to].Irecv(c[to], KindP2P, recv, from, 1, &cells[1]); err != nil {
		t.Fatal(err)
	}
	if err := e[from].Isend(c[from], KindP2P, send, to, 1, false, &cells[0]); err != nil {
		t.Fatal(err)
	}
	for !cells[0].Done() || !cells[1].Done() {
		if e[0].Progress(0)+e[1].Progress(0) == 0 && (e[0].Err() != nil || e[1].Err() != nil) {
			t.Fatal(e[0].Err(), e[1].Err())
		}
	}
}

// TestSteadyPathAllocatesNothing checks that messages need no allocations, eager or rendezvous.
func TestSteadyPathAllocatesNothing(t *testing.T) {
	for _, size := range []int{0, 8, 5000, 64 << 10, 1 << 20} {
		for level, change := range levels(t) {
			t.Run(fmt.Sprint(size, " ", level), func(t *testing.T) {
				e, c := pairOf(t, true, change)
				send, recv := make([]byte, size), make([]byte, size)
				var cells [2]Cell
				for i := range 300 { // fills the pools
					cross(t, e, c, i%2, send, recv, &cells)
				}
				n := 0
				if got := testing.AllocsPerRun(200, func() { n++; cross(t, e, c, n%2, send, recv, &cells) }); got >= 1 {
					t.Errorf("%v allocations per message", got)
				}
			})
		}
	}
}

// BenchmarkOneWay measures a message with both ends on one thread: cpu-ns is the processor time of
// both, which does not depend on the machine's other load.
func BenchmarkOneWay(b *testing.B) {
	for _, size := range []int{8, 64 << 10, 1 << 20} {
		for level, change := range levels(b) {
			b.Run(fmt.Sprint(size, "/", level), func(b *testing.B) {
				e, c := pairOf(b, true, change)
				send, recv := make([]byte, size), make([]byte, size)
				var cells [2]Cell
				cross(b, e, c, 0, send, recv, &cells)
				b.SetBytes(int64(size))
				b.ReportAllocs()
				b.ResetTimer()
				used := processorTime(b)
				n := 0
				for ; b.Loop(); n++ {
					cross(b, e, c, n%2, send, recv, &cells)
				}
				b.ReportMetric(float64(processorTime(b)-used)/float64(n), "cpu-ns/op")
			})
		}
	}
}

// BenchmarkBurst measures 64 small messages in one direction, then as many in the other. An
// operation is one message.
func BenchmarkBurst(b *testing.B) {
	const burst = 64
	for level, change := range levels(b) {
		b.Run(level.String(), func(b *testing.B) {
			e, c := pairOf(b, true, change)
			var send, recv [8]byte
			var cells [2][burst]Cell
			round := func(from int) {
				for i := range burst {
					cells[0][i], cells[1][i] = Cell{}, Cell{}
					if err := e[1-from].Irecv(c[1-from], KindP2P, recv[:], from, 1, &cells[1][i]); err != nil {
						b.Fatal(err)
					}
				}
				for i := range burst {
					if err := e[from].Isend(c[from], KindP2P, send[:], 1-from, 1, false, &cells[0][i]); err != nil {
						b.Fatal(err)
					}
				}
				for !cells[1][burst-1].Done() {
					if e[0].Progress(0)+e[1].Progress(0) == 0 && (e[0].Err() != nil || e[1].Err() != nil) {
						b.Fatal(e[0].Err(), e[1].Err())
					}
				}
			}
			round(0)
			b.ResetTimer()
			used := processorTime(b)
			n := 0
			for ; n < b.N; n += burst {
				round(n / burst % 2)
			}
			b.ReportMetric(float64(processorTime(b)-used)/float64(n), "cpu-ns/op")
		})
	}
}

func processorTime(b *testing.B) time.Duration {
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// TestCollectivesOverlap checks that several collectives of one communicator can be under way at a
// time. Its clusters have one rank, so that native collectives are not needed.
func TestCollectivesOverlap(t *testing.T) {
	engines := live(t, 1, 1, 1)
	var wg sync.WaitGroup
	for _, e := range engines {
		wg.Go(func() {
			c := spanAll(t, e)
			me := e.world.Rank
			const n = 5
			var cells [3 * n]Cell
			sums, roots := make([][]byte, n), make([][]byte, n)
			all := make([][]byte, n)
			for i := range n {
				sums[i], roots[i], all[i] = make([]byte, 100000), make([]byte, 4), make([]byte, 12)
				in := slices.Repeat([]byte{byte(me + i)}, 100000)
				if me == i%3 {
					binary.LittleEndian.PutUint32(roots[i], uint32(1000+i))
				}
				for k, what := range []Coll{
					{Args: collectives.Args{Op: collectives.OpAllreduce, Send: in, Recv: sums[i], Count: 100000, Extent: 1, Commutative: true}, Type: 7, Operator: 8},
					{Args: collectives.Args{Op: collectives.OpBcast, Recv: roots[i], Root: i % 3}},
					{Args: collectives.Args{Op: collectives.OpAllgatherv, Send: []byte{byte(me), 1, byte(i), 3}, Recv: all[i], RecvCounts: []int64{4, 4, 4}, RecvDispls: []int64{0, 4, 8}}},
				} {
					if err := e.Collective(c, what, &cells[3*i+k]); err != nil {
						t.Error(err)
						return
					}
				}
			}
			for i := range cells {
				await(e, &cells[i])
				if err := cells[i].Err(); err != nil {
					t.Errorf("rank %d, collective %d: %v", me, i, err)
				}
			}
			for i := range n {
				if want := byte(3*i + 3); sums[i][0] != want || sums[i][99999] != want {
					t.Errorf("rank %d: sum %d is %d, want %d", me, i, sums[i][0], want)
				}
				if got := binary.LittleEndian.Uint32(roots[i]); got != uint32(1000+i) {
					t.Errorf("rank %d: broadcast %d gave %d", me, i, got)
				}
				if want := []byte{0, 1, byte(i), 3, 1, 1, byte(i), 3, 2, 1, byte(i), 3}; !slices.Equal(all[i], want) {
					t.Errorf("rank %d: allgather %d gave %v", me, i, all[i])
				}
			}
			if n, _ := e.colls.Count(); n != 0 {
				t.Errorf("rank %d: %d collectives left", me, n)
			}
			if err := e.Finish(); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
}

// TestBadArgumentsGiveErrors checks that bad arguments give errors rather than panics, and leave
// nothing behind.
func TestBadArgumentsGiveErrors(t *testing.T) {
	f := newFabric(t, []int{2, 1}, Limits{})
	c := f.world(1)
	e := f.engines[0]
	var cell Cell
	for name, err := range map[string]error{
		"send to the own cluster": e.Isend(c[0], KindP2P, nil, 1, 0, false, &cell),
		"send to no rank":         e.Isend(c[0], KindP2P, nil, 3, 0, false, &cell),
		"send with a bad tag":     e.Isend(c[0], KindP2P, nil, 2, 1<<21, false, &cell),
		"send with a wildcard":    e.Isend(c[0], KindP2P, nil, 2, AnyTag, false, &cell),
		"receive from no rank":    e.Irecv(c[0], KindP2P, nil, 3, 0, &cell),
		"receive with a bad tag":  e.Irecv(c[0], KindP2P, nil, 2, -7, &cell),
		"receive of a bad kind":   e.Irecv(c[0], 9, nil, 2, 0, &cell),
		"no such message":         e.Mrecv(55, nil, &cell),
		"probe of no rank":        e.Iprobe(c[0], 7, 0, &cell),
		"collective":              e.Collective(c[0], Coll{Args: collectives.Args{Op: 99}}, &cell),
	} {
		if CodeOf(err) != ErrArg {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, add := range map[string]func() (*Comm, error){
		"same context":       func() (*Comm, error) { return e.AddComm(0, 1, 0, []int32{0, 2}, []int32{0, Remote}) },
		"not a member":       func() (*Comm, error) { return e.AddComm(0, 2, 0, []int32{1, 2}, []int32{0, Remote}) },
		"unknown rank":       func() (*Comm, error) { return e.AddComm(0, 2, 0, []int32{0, 9}, []int32{0, Remote}) },
		"native ranks clash": func() (*Comm, error) { return e.AddComm(0, 2, 0, []int32{0, 1, 2}, []int32{0, 0, Remote}) },
		"empty":              func() (*Comm, error) { return e.AddComm(0, 2, 0, nil, nil) },
	} {
		if _, err := add(); CodeOf(err) != ErrArg {
			t.Errorf("communicator, %s: %v", name, err)
		}
	}
	if err := e.Irecv(c[0], KindP2P, nil, 2, 0, &cell); err != nil {
		t.Fatal(err)
	}
	if err := e.DropComm(c[0]); CodeOf(err) != ErrArg {
		t.Errorf("communicator dropped under a receive: %v", err)
	}
	if !e.p2p.Busy() || !f.natives[0].busy || e.check() != nil {
		t.Errorf("busy: %v, told %v, %v", e.p2p.Busy(), f.natives[0].busy, e.check())
	}
}
