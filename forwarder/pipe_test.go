package forwarder

import (
	"bytes"
	"testing"

	"github.com/leidenzipper/zipper/forwarder/relay"
	"github.com/leidenzipper/zipper/internal/wire"
)

// inUse returns the number of pipes in use.
func (b *bench) inUse() int {
	n, _ := b.f.relay.Pipes()
	return n
}

// TestPipes checks that segments for a rank that does not read for a while, more than there are
// pipes for, arrive whole and in order: through pipes, through pipes that are full before a segment
// is in them, and without pipes.
func TestPipes(t *testing.T) {
	for _, c := range []struct {
		name string
		size int
		used bool
	}{{"pipes", relay.PipeSize, true}, {"two for a segment", 32 << 10, true}, {"too small", 4 << 10, false},
		{"none", -1, false}} {
		t.Run(c.name, func(t *testing.T) {
			b := start(t, tcpNetwork(), func(cfg *Config) { cfg.pipeSize, cfg.JobMemory = c.size, 128<<20 })
			r := b.join("j", twoClusters...)
			const frames, size = 3 * relay.MaxPipes, 128 << 10
			for i := range frames {
				r[0].send(data(0, 2, uint64(i), pattern(size+i, i)))
				if i%8 == 7 {
					r[0].send(eager(0, 3, i/8+1, pattern(i, i))) // between them
				}
			}
			for i := 7; i < frames; i += 8 {
				if h, body := r[3].expect(wire.TypeEager); h.Seq != uint64(i/8+1) ||
					!bytes.Equal(body[wire.EnvelopeLen:], pattern(i, i)) {
					t.Fatalf("message %d: %+v", i, h)
				}
			}
			if n := b.inUse(); c.size == relay.PipeSize && (n == 0 || n > relay.MaxPipes) {
				t.Errorf("%d pipes are in use", n)
			}
			for i := range frames {
				if _, body := r[2].expect(wire.TypeData); !bytes.Equal(body[wire.DataLen:], pattern(size+i, i)) {
					t.Fatalf("segment %d is changed", i)
				}
			}
			for _, x := range r {
				x.bye()
			}
			passed := uint64(0)
			for _, tr := range b.ended().Traffic {
				passed += tr.PassedBytes
			}
			if (passed > 0) != c.used {
				t.Errorf("%d bytes went through pipes", passed)
			}
			if n := b.inUse(); n != 0 {
				t.Errorf("%d pipes are still in use", n)
			}
		})
	}
}

// TestPipesLost checks that ranks that end in the middle of a segment, or with segments queued for
// them, leave no pipe behind.
func TestPipesLost(t *testing.T) {
	b := start(t, tcpNetwork(), nil)
	r := b.join("j", twoClusters...)
	for i := range 2 * relay.MaxPipes {
		r[0].send(data(0, 2, uint64(i), pattern(128<<10, i)))
	}
	f := data(1, 3, 0, pattern(128<<10, 0))
	r[1].send(append(f, f[:len(f)/2]...)) // the second begins in a pipe
	r[3].expect(wire.TypeData)
	for _, x := range r {
		x.link.Close()
	}
	b.ended()
	b.settled()
	if n := b.inUse(); n != 0 {
		t.Errorf("%d pipes are still in use", n)
	}
	b.stop()
	if _, n := b.f.relay.Pipes(); n != 0 {
		t.Errorf("%d pipes are left", n)
	}
}
