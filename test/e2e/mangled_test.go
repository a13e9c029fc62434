package e2e

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/leidenzipper/zipper/internal/wire"
)

// corrupter returns a function that damages one frame in about `of` frames of running jobs, as a
// bad network does: a bit is flipped, the frame is cut short, dropped or duplicated, or junk
// precedes it. It stops after most times.
func corrupter(seed uint64, of, most int, done *atomic.Int64) func(toRank bool, h wire.Header, frame []byte) [][]byte {
	r := rand.New(rand.NewPCG(seed, 5))
	return func(_ bool, h wire.Header, frame []byte) [][]byte {
		if !h.Type.BetweenRanks() || r.IntN(of) != 0 || done.Load() >= int64(most) {
			return [][]byte{frame}
		}
		done.Add(1)
		switch r.IntN(5) {
		case 0:
			frame = bytes.Clone(frame)
			frame[r.IntN(len(frame))] ^= 1 << r.IntN(8)
		case 1:
			frame = frame[:r.IntN(len(frame))]
		case 2:
			return nil
		case 3:
			return [][]byte{frame, frame}
		default:
			junk := make([]byte, 1+r.IntN(100))
			for i := range junk {
				junk[i] = byte(r.Uint32())
			}
			return [][]byte{junk, frame}
		}
		return [][]byte{frame}
	}
}

// TestDamagedFramesAreRepaired checks that jobs of both MPI libraries print their native output
// while their networks damage frames between ranks and forwarders and between forwarders: messages,
// collectives and communicators at random, and windows.
func TestDamagedFramesAreRepaired(t *testing.T) {
	b := New(t)
	clusters := []Cluster{A(2, OpenMPI), B(1, MPICH)}
	between := func(f *Forwarder, seed uint64, done *atomic.Int64) string {
		return tamper(t, f.Addr, corrupter(seed, 40, 12, done)).Addr
	}
	for _, net := range []struct {
		name  string
		flags func(done *atomic.Int64) []string
	}{
		{"one forwarder", func(done *atomic.Int64) []string {
			return []string{"--zipper", between(b.StartForwarder(), 1, done)}
		}},
		{"two forwarders, sealed", func(done *atomic.Int64) []string {
			return []string{"--zipper", between(b.StartForwarder(), 2, done), "--zipper",
				between(b.StartForwarder(), 3, done), "--level", "sealed"}
		}},
		{"between forwarders", func(done *atomic.Int64) []string {
			y, z := b.StartForwarder(), b.StartForwarder()
			return []string{"--network", "wan", "--zipper", "a@" + y.Addr + "+wan", "--zipper",
				"b@" + z.Addr + "+wan@" + between(z, 4, done), "--level", "checked"}
		}},
	} {
		for _, argv := range [][]string{{"c/random.c", "5", "200"}, {"c/rma_fence.c"}, {"c/rma_lock.c"}} {
			t.Run(fmt.Sprint(net.name, " ", argv[0]), func(t *testing.T) {
				b := *b
				b.T = t
				path := compileFor(&b, clusters, argv[0])
				native := oracle.run(&b, 3, append([]string{strings.ReplaceAll(path, "{mpi}", OpenMPI)},
					argv[1:]...)...)
				var done atomic.Int64
				r := b.OK(b.Zipped(Job{Clusters: clusters, Flags: net.flags(&done)},
					append([]string{path}, argv[1:]...)...))
				b.Same(native, r, nil)
				if done.Load() == 0 {
					t.Error("nothing was damaged")
				}
				t.Logf("%d frames damaged, %v", done.Load(), r.Took)
			})
		}
	}
}

// TestForgedBye checks that at level checked a Bye that no forwarder has sent counts as a lost
// link, and the job goes on. The forwarder has to believe a Bye in the name of a rank: the job
// ends, with the reason. At level sealed neither has an effect (TestSealedTampering).
func TestForgedBye(t *testing.T) {
	for _, toRank := range []bool{true, false} {
		t.Run(map[bool]string{true: "of the forwarder", false: "of a rank"}[toRank], func(t *testing.T) {
			b := New(t)
			prog, native := secretProgram(b, "6")
			f := b.StartForwarder()
			n := 0
			m := tamper(t, f.Addr, func(to bool, h wire.Header, frame []byte) [][]byte {
				if h.Type == wire.TypeEager && to == toRank {
					if n++; n == 5 {
						return [][]byte{wire.AppendFrame(nil, wire.Control(wire.TypeBye), nil), frame}
					}
				}
				return [][]byte{frame}
			})
			r := b.Zipped(Job{Clusters: []Cluster{A(1, OpenMPI), B(1, OpenMPI)},
				Flags: []string{"--zipper", "a@" + m.Addr + "+b@" + f.Addr, "--level", "checked"}}, prog, "6")
			if n < 5 {
				t.Fatalf("only %d messages went by", n)
			}
			if toRank {
				b.Same(native, b.OK(r), nil)
				if !strings.Contains(r.Stderr, "the forwarder is shutting down") {
					t.Errorf("no process has noticed:\n%v", r)
				}
				return
			}
			if r.Status == 0 {
				t.Fatalf("no process misses a rank that has not ended:\n%v", r)
			}
			b.Fails(r, r.Status, "confirmed a goodbye that was not sent", "has left job")
		})
	}
}
