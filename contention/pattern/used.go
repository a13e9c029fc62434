package pattern

import (
	"cmp"
	"math/big"
	"slices"

	"github.com/leidenzipper/zipper/contention/platform"
	"github.com/leidenzipper/zipper/internal/traffic/trace"
)

// processorTimes has the steps of ranks in their order (a message sent or received), and the
// processor time that a rank used before each of its steps.
type processorTimes struct {
	known bool // whether the trace has processor times
	// turns has the steps of each message of the trace, by its index: the sender's and the
	// receiver's.
	turns [][2]turn
}

type turn struct {
	place    int   // position among all steps of its rank
	computed int64 // processor time since the step before, in ns
}

func newProcessorTimes(ranks int, ms []trace.Message) *processorTimes {
	type event struct {
		at, used int64
		message  int
		end      int // 0 if the message is sent, 1 if it is received
	}
	p := &processorTimes{turns: make([][2]turn, len(ms))}
	of := make([][]event, ranks)
	for i, m := range ms {
		p.known = p.known || m.SrcUsed > 0 || m.DstUsed > 0
		of[m.Src] = append(of[m.Src], event{m.Start, m.SrcUsed, i, 0})
		of[m.Dst] = append(of[m.Dst], event{m.End, m.DstUsed, i, 1})
	}
	for _, list := range of {
		// Sends go before receives of the same time, so that no rank waits for itself.
		slices.SortFunc(list, func(a, b event) int {
			return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.end, b.end), cmp.Compare(a.message, b.message))
		})
		last := int64(0)
		for place, e := range list {
			// A change of the clock can have swapped two steps that were close together.
			p.turns[e.message][e.end] = turn{place, max(0, e.used-last)}
			last = max(last, e.used)
		}
	}
	return p
}

// describe sets in x the positions of message i of the trace: of the send among the sender's steps,
// and of the receive among the receiver's. It also sets the processor times in seconds that each of
// them spent since its previous step, multiplied by compute. It does nothing if the trace has no
// processor times.
func (p *processorTimes) describe(x *platform.Message, i int, compute *big.Rat) {
	if !p.known {
		return
	}
	t := &p.turns[i]
	computed := func(t turn) *big.Rat {
		c := big.NewRat(t.computed, 1e9)
		return c.Mul(c, compute)
	}
	x.Turn = [2]int{t[0].place, t[1].place}
	x.Work, x.Taken = computed(t[0]), computed(t[1])
}
