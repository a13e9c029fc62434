package engine

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"testing"
)

// TestNetRandom: rails and direct links are lost, in the middle of frames too, and come back, while
// messages of all sizes are on their way: all arrive whole and in order, and nothing is counted
// wrong. The same every time for a seed.
func TestNetRandom(t *testing.T) {
	for seed := range uint64(100) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) { netRandom(t, rand.New(rand.NewPCG(seed, 7))) })
	}
}

// progressPartly has an engine read some bytes only of what has come over each rail.
func (n *railNet) progressPartly(e *Engine, rank int, r *rand.Rand) {
	late := make([][]byte, len(n.strands[rank]))
	for i, s := range n.strands[rank] {
		k := len(s.down)
		switch {
		case s.slow:
			k = min(k, r.IntN(50))
		case r.IntN(2) == 0:
			k = r.IntN(k + 1)
		}
		s.down, late[i] = s.down[:k:k], s.down[k:]
	}
	e.Progress(0)
	for i, s := range n.strands[rank] {
		s.down = append(s.down, late[i]...)
	}
}

func netRandom(t *testing.T, r *rand.Rand) {
	var opt netOptions
	sizes := [][]int{{1, 1}, {2, 1}, {1, 1, 1}}[r.IntN(3)]
	opt.rails = 1 + r.IntN(3)
	opt.hops = len(sizes) == 3
	if r.IntN(2) == 0 && !opt.hops {
		opt.direct = [][2]int{{0, len(sizes) - 1 + sizes[0] - 1}}
	}
	limits := Limits{Eager: 500, EagerWindow: 3000, DataWindow: 4000, Segment: 400}
	n := newRailNet(t, sizes, limits, opt, func(string, ...any) {})
	lossy := r.IntN(opt.rails) // the row that has losses
	if opt.rails == 1 {
		lossy = -1
	}
	type message struct {
		cell      Cell
		want, buf []byte
	}
	received := map[[2]int][]*message{}
	sent := 0
	for range 400 {
		rank := r.IntN(len(n.engines))
		e, s := n.engines[rank], n.strands[rank][r.IntN(len(n.strands[rank]))]
		switch r.IntN(13) {
		case 12:
			s.slow = r.IntN(2) == 0
		case 0, 1, 2: // a message to another cluster, received there
			to := r.IntN(len(n.engines))
			if e.sameCluster(to) {
				continue
			}
			m := &message{want: pattern(sent, r.IntN(500*(1+4*r.IntN(2)))), buf: make([]byte, 2500)}
			sent++
			if err := e.Isend(e.p2p.CommOf(1), KindP2P, m.want, to, 1, r.IntN(4) == 0, new(Cell)); err != nil {
				t.Fatal(err)
			}
			far := n.engines[to]
			if err := far.Irecv(far.p2p.CommOf(1), KindP2P, m.buf, rank, 1, &m.cell); err != nil {
				t.Fatal(err)
			}
			received[[2]int{rank, to}] = append(received[[2]int{rank, to}], m)
		case 3: // a loss
			switch {
			case s.peer >= 0 && !s.eof && e.Rails()[s.rail].Up:
				n.part(rank, s.peer)
				s.down = s.down[:r.IntN(len(s.down)+1)]
			case s.peer < 0 && !opt.hops && s.rail == lossy && !s.eof:
				n.lose(s)
				s.down = s.down[:r.IntN(len(s.down)+1)]
			}
		case 4: // and the end of one
			switch st := e.Rails()[s.rail]; {
			case !s.eof && s.peer < 0 || st.State != "dialling":
			case s.peer < 0:
				n.back(s)
			case n.engines[s.peer].Rails()[n.direct(s.peer, rank).rail].State == "down":
				n.meet(s.peer, rank)
			}
		case 5, 6, 7, 8:
			n.relay(s, 1+r.IntN(3))
		default:
			n.progressPartly(e, rank, r)
		}
		for rank, e := range n.engines {
			if err := e.check(); err != nil {
				t.Fatalf("rank %d: %v", rank, err)
			}
		}
	}
	n.settle()
	for _, all := range n.strands {
		for _, s := range all {
			if s.peer < 0 && s.eof {
				n.back(s)
			}
		}
	}
	n.settle()
	for pair, all := range received {
		for i, m := range all {
			if !m.cell.Done() || m.cell.Err() != nil || !bytes.Equal(m.buf[:m.cell.Bytes], m.want) {
				t.Fatalf("%v, %+v: message %d of %d from %d to %d: done %v, %d of %d bytes", sizes, opt, i, len(all),
					pair[0], pair[1],
					m.cell.Done(), m.cell.Bytes, len(m.want))
			}
		}
	}
	for rank, e := range n.engines {
		if e.p2p.Busy() || n.natives[rank].failed != "" {
			t.Errorf("rank %d: busy %v, %q", rank, e.p2p.Busy(), n.natives[rank].failed)
		}
	}
}
