package forwarder

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"path/filepath"
	"sync"
	"testing"

	"github.com/leidenzipper/zipper/internal/transport"
	"github.com/leidenzipper/zipper/internal/transport/memnet"
	"github.com/leidenzipper/zipper/internal/transport/shm"
	"github.com/leidenzipper/zipper/internal/transport/transporttest"
	"github.com/leidenzipper/zipper/internal/wire"
)

// dataHead is the head of a Data frame.
const dataHead = wire.HeaderLen + wire.DataLen

// memoryNetwork keeps little on its way, so that queues fill early.
func memoryNetwork(opt memnet.Options) network {
	var n *memnet.Network
	return network{
		listen: func(t *testing.T) transport.Listener {
			n = memnet.New(opt)
			ln, err := n.Listen("zip")
			if err != nil {
				t.Fatal(err)
			}
			return ln
		},
		dial: func(transport.Listener) transport.Dialer { return n },
	}
}

func shmNetwork() network {
	return network{
		listen: func(t *testing.T) transport.Listener {
			ln, err := shm.Listen(filepath.Join(t.TempDir(), "s"), 1<<16)
			if err != nil {
				t.Fatal(err)
			}
			return ln
		},
		dial: func(transport.Listener) transport.Dialer { return shm.Dialer{} },
	}
}

func networks() map[string]network {
	return map[string]network{"tcp": tcpNetwork(), "shm": shmNetwork(),
		"memnet": memoryNetwork(memnet.Options{Partial: 7}),
		"pieces": memoryNetwork(memnet.Options{Partial: 7, Pieces: 4})}
}

// stream sends n random frames to each of dst, interleaved: eager ones numbered in Seq, and Data
// numbered in Offset.
func (r *rank) stream(n int, dst ...int) error {
	rnd := rand.New(rand.NewPCG(uint64(r.Rank), 1))
	eagers, datas := map[int]int{}, map[int]int{}
	for range n {
		for _, d := range dst {
			size := rnd.IntN(200)
			if rnd.IntN(4) == 0 {
				size = rnd.IntN(150_000)
			}
			var f []byte
			if rnd.IntN(2) == 0 {
				eagers[d]++
				f = eager(int(r.Rank), d, eagers[d], pattern(size, eagers[d]))
			} else {
				datas[d]++
				f = data(int(r.Rank), d, uint64(datas[d]), pattern(size, datas[d]))
				if l, ok := r.link.(transport.Lender); ok && size > 100 && len(f) <= l.MaxPiece() {
					if err := transporttest.SendPiece(l, f[:dataHead], f[dataHead:]); err != nil {
						return err
					}
					continue
				}
			}
			if err := r.write(f); err != nil {
				return err
			}
		}
	}
	return nil
}

// drain reads n frames and checks that each class of each source comes in order and unchanged.
func (r *rank) drain(n int) error {
	eagers, datas := map[uint32]uint64{}, map[uint32]uint64{}
	for got := 0; got < n; {
		h, body, err := r.recv()
		if err != nil {
			return err
		}
		var seq, last uint64
		switch h.Type {
		case wire.TypePing:
			continue
		case wire.TypeEager:
			seq, last = h.Seq, eagers[h.Src]
			eagers[h.Src]++
			body = body[wire.EnvelopeLen:]
		case wire.TypeData:
			d, err := wire.ParseData(body)
			if err != nil {
				return err
			}
			seq, last = d.Offset, datas[h.Src]
			datas[h.Src]++
			body = body[wire.DataLen:]
		default:
			return errors.New(h.Type.String() + " " + string(body))
		}
		if seq != last+1 {
			return errors.New("out of order")
		}
		if h.Dst != r.Rank || !bytes.Equal(body, pattern(len(body), int(seq))) {
			return errors.New("changed or misled")
		}
		got++
	}
	return nil
}

// TestStreams checks messages between all pairs of ranks at once, in every network.
func TestStreams(t *testing.T) {
	for name, n := range networks() {
		t.Run(name, func(t *testing.T) {
			b := start(t, n, func(c *Config) { c.pipeFrom = 100 })
			r := b.join("j", wire.Cluster{Name: "a", Size: 2}, wire.Cluster{Name: "b", Size: 1},
				wire.Cluster{Name: "c", Size: 1})
			const frames = 150
			var wg sync.WaitGroup
			for i, x := range r {
				var others []int
				for k := range r {
					if k != i {
						others = append(others, k)
					}
				}
				wg.Go(func() {
					if err := x.stream(frames, others...); err != nil {
						t.Errorf("rank %d sends: %v", i, err)
						x.link.Close()
					}
				})
				wg.Go(func() {
					if err := x.drain(frames * len(others)); err != nil {
						t.Errorf("rank %d receives: %v", i, err)
						x.link.Close()
					}
				})
			}
			wg.Wait()
			if t.Failed() {
				return
			}
			for _, x := range r {
				x.bye()
			}
			s := b.ended()
			total := uint64(0)
			for _, tr := range s.Traffic {
				total += tr.Frames
			}
			if !s.OK || total != frames*12 || len(s.Traffic) != 7 { // 6 directions and a→a
				t.Errorf("summary %+v", s)
			}
			passed := uint64(0)
			for _, tr := range s.Traffic {
				passed += tr.PassedBytes
			}
			if (passed > 0) != (name == "pieces" || name == "tcp") {
				t.Errorf("%d bytes were passed on without a copy", passed)
			}
			if st := b.f.Status(); st.Links != 0 || len(st.Jobs) != 0 || len(st.Past) != 1 {
				t.Errorf("left behind: %+v", st)
			}
		})
	}
}

// TestStalledReader checks that a rank that does not read delays no other rank while its queue is
// within bounds, and that it loses nothing.
func TestStalledReader(t *testing.T) {
	for name, n := range networks() {
		t.Run(name, func(t *testing.T) {
			b := start(t, n, func(c *Config) { c.JobMemory = 128 << 20 })
			r := b.join("j", twoClusters...)
			const frames, size = 200, 100_000 // far more than any transport keeps
			for i := range frames {
				r[0].send(eager(0, 2, i+1, pattern(size, i)))
			}
			for i := range 50 { // the same source goes on, and so do others
				r[0].send(eager(0, 3, i+1, nil))
				r[3].expect(wire.TypeEager)
				r[3].send(eager(3, 1, i+1, nil))
				r[1].expect(wire.TypeEager)
			}
			if q := b.f.Status().Jobs[0].QueuedBytes; q < 1<<20 {
				t.Errorf("only %d bytes are queued: not stalled at all", q)
			}
			for i := range frames {
				h, body := r[2].expect(wire.TypeEager)
				if h.Seq != uint64(i+1) || !bytes.Equal(body[wire.EnvelopeLen:], pattern(size, i)) {
					t.Fatalf("frame %d: %+v", i, h)
				}
			}
			for _, x := range r {
				x.bye()
			}
			b.ended()
		})
	}
}

// TestSmallOvertakesBulk checks the order of the queue for a slow reader: small frames first, and
// the order of arrival inside a class.
func TestSmallOvertakesBulk(t *testing.T) {
	b := start(t, memoryNetwork(memnet.Options{Buffer: 1000}), nil)
	r := b.join("j", twoClusters...)
	for i := range 20 {
		r[0].send(data(0, 2, uint64(i), pattern(5000, i)))
	}
	for i := range 10 {
		r[0].send(eager(0, 2, i+1, nil))
	}
	r[0].send(eager(0, 3, 1, nil)) // once this has arrived, all of the above is queued
	r[3].expect(wire.TypeEager)
	if _, body := r[2].expect(wire.TypeData); body[8] != 0 {
		t.Errorf("first frame is number %d", body[8])
	}
	for i := range 10 {
		if h, _ := r[2].expect(wire.TypeEager); h.Seq != uint64(i+1) {
			t.Errorf("small frame %d comes as %d", h.Seq, i+1)
		}
	}
	for i := range 19 {
		if _, body := r[2].expect(wire.TypeData); int(body[8]) != i+1 ||
			!bytes.Equal(body[wire.DataLen:], pattern(5000, i+1)) {
			t.Errorf("bulk frame %d comes as %d", body[8], i+1)
		}
	}
}
