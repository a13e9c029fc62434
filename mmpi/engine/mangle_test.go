package engine

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"
)

// harms are what a network does to bytes on their way. Each gets bytes that are its own to change,
// and returns what comes out; nil: the link is cut.
var harms = []struct {
	name string
	do   func(r *rand.Rand, b []byte) []byte
}{
	{"flip", func(r *rand.Rand, b []byte) []byte {
		b[r.IntN(len(b))] ^= 1 << r.IntN(8)
		return b
	}},
	{"drop", func(r *rand.Rand, b []byte) []byte {
		i, k := piece(r, b)
		return slices.Delete(b, i, k)
	}},
	{"double", func(r *rand.Rand, b []byte) []byte {
		i, k := piece(r, b)
		return slices.Insert(b, k, bytes.Clone(b[i:k])...)
	}},
	{"swap", func(r *rand.Rand, b []byte) []byte {
		i, k := piece(r, b)
		return append(append(bytes.Clone(b[k:]), b[i:k]...), b[:i]...)
	}},
	{"cut", func(*rand.Rand, []byte) []byte { return nil }},
	{"stall", func(r *rand.Rand, b []byte) []byte {
		time.Sleep(time.Duration(r.IntN(100)) * time.Millisecond) // the harm itself: nothing waits for it
		return b
	}},
	{"inject", func(r *rand.Rand, b []byte) []byte {
		junk := make([]byte, 1+r.IntN(200))
		for i := range junk {
			junk[i] = byte(r.Uint32())
		}
		return slices.Insert(b, r.IntN(len(b)+1), junk...)
	}},
}

// piece is a part of b that is not empty.
func piece(r *rand.Rand, b []byte) (from, to int) {
	from = r.IntN(len(b))
	return from, from + 1 + r.IntN(len(b)-from)
}

// Whatever a network does to what it carries, no wrong byte reaches the program, nothing hangs, and
// the job goes on, with one forwarder as with two. ZIPPER_LONG=N makes N times as many seeds, 50 times
// with N=1.
func TestMangled(t *testing.T) {
	seeds := 2
	switch n, err := strconv.Atoi(os.Getenv("ZIPPER_LONG")); {
	case err != nil || n < 1:
	case n == 1:
		seeds = 100
	default:
		seeds *= n
	}
	for seed := range uint64(seeds) {
		n := 1 + int(seed%2)
		t.Run(fmt.Sprintf("seed %d, %d forwarders", seed, n), func(t *testing.T) {
			engines, proxies, _ := railed(t, n, 2, 1, 2)
			count := map[string]int{}
			exchangeWhileCut(t, engines, seed, func(r *rand.Rand) {
				harm := harms[r.IntN(len(harms))]
				own := rand.New(rand.NewPCG(r.Uint64(), r.Uint64()))
				p := proxies[r.IntN(n)]
				p.mu.Lock()
				p.mangle = func(b []byte) []byte { return harm.do(own, bytes.Clone(b)) }
				p.mu.Unlock()
				count[harm.name]++
				ready(t, engines)
			})
			lost := 0
			for _, e := range engines {
				for _, r := range e.links.Status() {
					lost += r.Losses
				}
			}
			t.Logf("%v; %d links lost", count, lost)
			if lost == 0 {
				t.Error("no link was lost: nothing was tested")
			}
		})
	}
}
