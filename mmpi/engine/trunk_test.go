package engine

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"github.com/leidenzipper/zipper/wire"
)

// TestOvertaken: in a job of several hops the forwarders on the way may have several connections
// between them, so that frames of all kinds overtake each other; messages keep their order and
// their bytes.
func TestOvertaken(t *testing.T) {
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
				for dst := range held { // what nothing comes after comes by itself
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
				t.Fatalf("seed %d, message %d of %d bytes: sent %v, received %v", seed, i, sizes[i], out[i].Done(), in[i].Done())
			}
		}
	}
	for _, typ := range []wire.Type{wire.TypeData, wire.TypeEager, wire.TypeRTS, wire.TypeCredit} {
		if swapped[typ] == 0 {
			t.Errorf("no %v frame overtook another: %v", typ, swapped)
		}
	}
}
