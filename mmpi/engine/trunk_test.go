package engine

import (
	"bytes"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/leidenzipper/zipper/forwarder"
	"github.com/leidenzipper/zipper/internal/dial"
	"github.com/leidenzipper/zipper/internal/jobenv"
	"github.com/leidenzipper/zipper/internal/wire"
)

// TestOvertakingFramesKeepMessagesInOrder checks that messages keep their order and their bytes
// while frames of all kinds overtake each other, as they may in a job of several hops, whose
// forwarders have several connections between them.
func TestOvertakingFramesKeepMessagesInOrder(t *testing.T) {
	swapped := map[wire.Type]int{}
	for seed := range uint64(20) {
		rnd := rand.New(rand.NewPCG(seed, 0))
		f := newFabric(t, []int{1, 1}, Limits{Eager: 300, EagerWindow: 4000, DataWindow: 5000, Segment: 500},
			func(_ int, cfg *Config) { cfg.Routes = [][]int{{0}, {0}} })
		var held [2][][]byte
		f.edit = func(h *wire.Header, frame []byte) [][]byte {
			wait := &held[h.Dst]
			if len(*wait) < 4 && rnd.IntN(2) == 0 {
				*wait = append(*wait, frame)
				return nil
			}
			out := [][]byte{frame}
			for rnd.IntN(3) > 0 && len(*wait) > 0 {
				i := rnd.IntN(len(*wait))
				out = append(out, (*wait)[i])
				*wait = append((*wait)[:i], (*wait)[i+1:]...)
				swapped[h.Type]++
			}
			return out
		}
		settle := func() {
			for again := true; again; {
				f.settle()
				again = false
				for dst := range held { // frames that no other frame releases arrive now
					for _, frame := range held[dst] {
						f.down[dst] = append(f.down[dst], frame...)
						again = true
					}
					held[dst] = nil
				}
			}
		}
		comms := f.world(1)
		sizes := []int{0, 100, 7000, 300, 2000, 1, 12000, 299, 301, 501}
		sent, got := make([][]byte, len(sizes)), make([][]byte, len(sizes))
		out, in := make([]Cell, len(sizes)), make([]Cell, len(sizes))
		for i, n := range sizes {
			sent[i], got[i] = make([]byte, n), make([]byte, n)
			for k := range sent[i] {
				sent[i][k] = byte(rnd.Uint32())
			}
			if err := f.engines[1].Irecv(comms[1], KindP2P, got[i], 0, 0, &in[i]); err != nil {
				t.Fatal(err)
			}
			if err := f.engines[0].Isend(comms[0], KindP2P, sent[i], 1, 0, false, &out[i]); err != nil {
				t.Fatal(err)
			}
			if rnd.IntN(3) == 0 {
				settle()
			}
		}
		settle()
		for i := range sizes {
			if !out[i].Done() || !in[i].Done() || !bytes.Equal(sent[i], got[i]) {
				t.Fatalf("seed %d, message %d of %d bytes: sent %v, received %v", seed, i, sizes[i], out[i].Done(),
					in[i].Done())
			}
		}
	}
	for _, typ := range []wire.Type{wire.TypeData, wire.TypeEager, wire.TypeRTS, wire.TypeCredit} {
		if swapped[typ] == 0 {
			t.Errorf("no %v frame overtook another: %v", typ, swapped)
		}
	}
}

// trunkNet is a net of clusters a and b with a forwarder each, for every row, and a trunk between
// these: several connections, through a proxy.
type trunkNet struct {
	job        jobenv.Job
	proxies    []*proxy
	forwarders []*forwarder.Forwarder // the forwarders of a and b, row by row
}

func newTrunkNet(t testing.TB, rows int) *trunkNet {
	n := &trunkNet{job: jobenv.Job{ID: "test", Secret: "s", Timeout: 20 * time.Second, Networks: []string{"wan"}}}
	for range rows {
		y, atY := serve(t, func(c *forwarder.Config) { c.Dial, c.PingInterval, c.Trunk = dial.Open, mangledPing, 3 })
		z, atZ := serve(t, func(c *forwarder.Config) { c.Dial, c.PingInterval = dial.Open, mangledPing })
		p := newProxy(t, atZ)
		n.proxies, n.forwarders = append(n.proxies, p), append(n.forwarders, y, z)
		n.job.Zippers = append(n.job.Zippers,
			jobenv.Zipper{Ports: []jobenv.Port{{Network: "a", Address: atY}, {Network: "wan"}}},
			jobenv.Zipper{Ports: []jobenv.Port{{Network: "b", Address: atZ},
				{Network: "wan", Address: p.ln.Addr().String()}}})
	}
	return n
}

// waitWhole waits until all connections of a row's trunk are in use at both ends.
func (n *trunkNet) waitWhole(t testing.TB, row int) {
	t.Helper()
	var s []forwarder.TrunkStatus
	for end := time.Now().Add(20 * time.Second); time.Now().Before(end); time.Sleep(time.Millisecond) {
		s = nil
		for _, f := range n.forwarders[2*row:][:2] {
			for _, j := range f.Status().Jobs {
				s = append(s, j.Trunks...)
			}
		}
		if len(s) == 2 && s[0].Connections == 4 && s[1].Connections == 4 {
			return
		}
	}
	t.Fatalf("trunk %d: %+v", row, s)
}

// waitEnd waits for all forwarders to see their jobs end.
func (n *trunkNet) waitEnd(t testing.TB) {
	t.Helper()
	for i, f := range n.forwarders {
		for end := time.Now().Add(20 * time.Second); len(f.Status().Past) == 0 && time.Now().Before(end); {
			time.Sleep(time.Millisecond)
		}
		if s := f.Status().Past; len(s) != 1 || !s[0].OK {
			t.Errorf("forwarder %d: %+v", i, s)
		}
	}
}

// TestTrafficCrossesTrunk checks the traffic of TestTrafficArrivesInOrder over a trunk of several
// connections, all of which end with Bye.
func TestTrafficCrossesTrunk(t *testing.T) {
	n := newTrunkNet(t, 1)
	engines := joinJob(t, n.job, 2, 2)
	n.waitWhole(t, 0)
	randomTraffic(t, engines, 5)
	n.waitEnd(t)
}

// TestCutTrunksLoseNothing checks that no message is lost, doubled or put out of order while
// connections of two trunks side by side are cut again and again in all kinds of traffic, and that
// the connections come back.
func TestCutTrunksLoseNothing(t *testing.T) {
	n := newTrunkNet(t, 2)
	engines := joinJob(t, n.job, 2, 2)
	ready(t, engines)
	n.waitWhole(t, 0)
	n.waitWhole(t, 1)
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		rnd := rand.New(rand.NewPCG(7, 7))
		for cuts := 0; ; cuts++ {
			select {
			case <-stop:
				if cuts < 2 {
					t.Errorf("only %d connections were cut", cuts)
				}
				return
			default:
				n.proxies[cuts%2].cut(rnd)
			}
		}
	}()
	var over sync.WaitGroup
	over.Add(len(engines))
	finishAll(t, engines, func(e *Engine) error {
		err := exchangeAll(t, e, 400, rand.New(rand.NewPCG(7, uint64(e.world.Rank))))
		over.Done()
		if e.world.Rank == 0 {
			over.Wait()
			close(stop)
		}
		<-stopped
		return err
	})
}
