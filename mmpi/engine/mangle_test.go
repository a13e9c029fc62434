package engine

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/leidenzipper/zipper/internal/seeds"
	"github.com/leidenzipper/zipper/internal/wire"
)

type harm struct {
	name string
	do   func(r *rand.Rand, b []byte, next func() []byte) []byte
}

// event is one change that a network makes to the bytes that it carries.
type event struct {
	Number   int         // the number of the event in its job
	Proxy    int         // the index of the proxy that makes the change
	Way      int         // the direction: 0 is that of the dialling end, 1 is back
	Skip     int         // the number of frames that pass before the change
	Only     wire.Type   // the type of the frames that count; 0: all types
	Harm     int         // the index in harms
	Before   []byte      // bytes inserted before the frame, in place of a harm; nil: none
	Seed     uint64      // the seed of the harm's random numbers
	Typ      wire.Type   // the type of the frame that was changed
	Happened atomic.Bool // whether the change has been made
}

func (e *event) String() string {
	way := [...]string{"there", "back"}[e.Way]
	return fmt.Sprintf("%d: %s %v at proxy %d, %s", e.Number, harms[e.Harm].name, e.Typ, e.Proxy, way)
}

func (e *event) do(frame []byte, next func() []byte) []byte {
	if e.Before != nil {
		return append(bytes.Clone(e.Before), frame...)
	}
	return harms[e.Harm].do(e.rand(), frame, next)
}

func (e *event) rand() *rand.Rand { return rand.New(rand.NewPCG(e.Seed, 1)) }

func (e *event) done(typ wire.Type) {
	e.Typ = typ
	e.Happened.Store(true)
}

// harms are the changes that a network makes to bytes on their way. Each gets a frame, which it may
// modify, and returns the bytes that arrive; nil: the link is cut. next returns the frame behind,
// or nil if none follows soon. Most harms ignore the borders of frames. Those whose names end with
// "frame" or "frames" are the changes of an attacker that knows the protocol.
var harms = []harm{
	{"flip", func(r *rand.Rand, b []byte, _ func() []byte) []byte {
		b[r.IntN(len(b))] ^= 1 << r.IntN(8)
		return b
	}},
	{"flip", func(r *rand.Rand, b []byte, _ func() []byte) []byte { // a bit of the header
		b[r.IntN(wire.HeaderLen)] ^= 1 << r.IntN(8)
		return b
	}},
	{"drop", func(r *rand.Rand, b []byte, _ func() []byte) []byte {
		i, k := piece(r, b)
		return slices.Delete(b, i, k)
	}},
	{"double", func(r *rand.Rand, b []byte, _ func() []byte) []byte {
		i, k := piece(r, b)
		return slices.Insert(b, k, bytes.Clone(b[i:k])...)
	}},
	{"swap", func(r *rand.Rand, b []byte, next func() []byte) []byte {
		b = append(b, next()...)
		i, k := piece(r, b)
		return append(append(bytes.Clone(b[k:]), b[i:k]...), b[:i]...)
	}},
	{"cut", func(r *rand.Rand, b []byte, _ func() []byte) []byte { return nil }},
	{"stall", func(r *rand.Rand, b []byte, _ func() []byte) []byte {
		time.Sleep(time.Duration(r.IntN(100)) * time.Millisecond) // the harm itself: nothing waits for it
		return b
	}},
	{"inject", func(r *rand.Rand, b []byte, _ func() []byte) []byte {
		junk := make([]byte, 1+r.IntN(200))
		for i := range junk {
			junk[i] = byte(r.Uint32())
		}
		return slices.Insert(b, r.IntN(len(b)+1), junk...)
	}},
	{"drop frame", func(*rand.Rand, []byte, func() []byte) []byte { return []byte{} }},
	{"double frame", func(_ *rand.Rand, b []byte, _ func() []byte) []byte { return append(bytes.Clone(b), b...) }},
	{"swap frames", func(_ *rand.Rand, b []byte, next func() []byte) []byte { return append(next(), b...) }},
	{"inject frame", func(r *rand.Rand, b []byte, _ func() []byte) []byte {
		h, err := wire.ParseHeader(b)
		if err != nil {
			return b
		}
		all := []wire.Type{wire.TypePing, wire.TypePong, wire.TypeBye, wire.TypeAbort}
		if h.Flags&wire.FlagSealed == 0 {
			all = all[:2] // only seals protect against the others
		}
		c := wire.Control(all[r.IntN(len(all))])
		if h.Type.BetweenRanks() && r.IntN(2) == 0 {
			c = wire.Header{Type: wire.TypeAck, Epoch: 1, Src: h.Src, Dst: h.Dst}
		}
		var body wire.Body
		if c.Type == wire.TypeAbort {
			body = &wire.Abort{Code: 77, Reason: "invented", By: wire.Nobody}
		}
		return append(wire.AppendFrame(nil, c, body), b...)
	}},
}

// piece returns the bounds of a random part of b that is not empty.
func piece(r *rand.Rand, b []byte) (from, to int) {
	from = r.IntN(len(b))
	return from, from + 1 + r.IntN(len(b)-from)
}

// plan returns the events of a job with a seed.
func plan(seed uint64, events int) []*event {
	var all []*event
	for i := range events {
		r := rand.New(rand.NewPCG(seed, uint64(i)))
		all = append(all, &event{Number: i, Proxy: r.IntN(12), Way: r.IntN(2), Skip: r.IntN(40),
			Harm: r.IntN(len(harms)), Seed: r.Uint64()})
	}
	return all
}

// mangledNet is a kind of job that survives any change that one network in it makes.
type mangledNet struct {
	name  string
	level string
	start func(t *testing.T, level string) ([]*Engine, []*proxy)
}

var mangledNets = []mangledNet{
	{"one forwarder", "checked", startRailed(1)},
	{"two forwarders", "checked", startRailed(2)},
	{"two hops", "checked", startTrunks(1)},
	{"two hops and rows", "checked", startTrunks(2)},
	{"one forwarder, sealed", "sealed", startRailed(1)},
	{"two forwarders, sealed", "sealed", startRailed(2)},
	{"two hops, sealed", "sealed", startTrunks(1)},
	{"two hops and rows, sealed", "sealed", startTrunks(2)},
}

// outcome is the result of a job with planned events.
type outcome struct {
	met    []*event // the events that happened
	losses int      // the number of links lost
	rounds int      // the number of rounds of traffic
	err    error    // wrong bytes, a hang, or the end of the job; nil: the job succeeded
}

// TestMangled checks that no wrong byte reaches the program, nothing hangs and the job goes on with
// any change that a network makes to its traffic: messages, collectives and windows, over one and
// two forwarders and hops, at levels checked and sealed. ZIPPER_LONG=N makes N thousand events, 100
// with N=1, ZIPPER_SEEDS=FROM-TO 50 for each seed. A job that fails is run again with fewer and
// fewer events; the test prints the fewest that still fail, with the command that repeats them.
func TestMangled(t *testing.T) {
	if c := os.Getenv(mangledCase); c != "" {
		runCase(t, c)
		return
	}
	from, to, events := mangledJobs(t)
	begin := time.Now()
	sum, harm := map[string]int{}, map[string]int{}
	for seed := from; seed < to; seed++ {
		if os.Getenv(seeds.Variable) == "" && time.Since(begin) > mangledMost {
			t.Logf("stopped after %v", mangledMost)
			break
		}
		net := mangledNets[seed%uint64(len(mangledNets))]
		t.Run(fmt.Sprintf("seed %d, %s", seed, net.name), func(t *testing.T) {
			o := net.run(t, seed, plan(seed, events))
			for _, ev := range o.met {
				harm[harms[ev.Harm].name]++
			}
			sum["jobs"]++
			sum["events"] += len(o.met)
			sum["rounds"] += o.rounds
			sum["links lost"] += o.losses
			t.Logf("%d events, %d rounds, %d links lost", len(o.met), o.rounds, o.losses)
			if o.err != nil {
				sum["failed"]++
				t.Errorf("%v\nevents:\n%v", o.err, listed(o.met))
				t.Errorf("the fewest events that still fail: %s", shrink(t, net, seed, events, o.met))
			}
		})
	}
	t.Logf("%v, %v in %v", sum, harm, time.Since(begin).Round(time.Second))
	if sum["links lost"] == 0 && !t.Failed() {
		t.Error("no link was lost: nothing was tested")
	}
}

func listed(all []*event) string {
	var b strings.Builder
	for _, ev := range all {
		fmt.Fprintf(&b, "  %v\n", ev)
	}
	return b.String()
}
