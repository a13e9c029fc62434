package pattern

import (
	"cmp"
	"math/big"
	"slices"

	"github.com/leidenzipper/zipper/contention/platform"
	"github.com/leidenzipper/zipper/internal/traffic/trace"
)

// processorTimes are ranks' turns in the order in which they had them, a message sent or one taken,
// and what each had computed by then.
type processorTimes struct {
	known bool
	turns [][2]turn // by message: the sender's and the receiver's
}

type turn struct {
	place    int
	computed int64 // since the turn before, ns
}

func newProcessorTimes(ranks int, ms []trace.Message) *processorTimes {
	type event struct {
		at, used int64
		message  int
		end      int // 0: it is sent, 1: it is taken
	}
	p := &processorTimes{turns: make([][2]turn, len(ms))}
	of := make([][]event, ranks)
	for i, m := range ms {
		p.known = p.known || m.SrcUsed > 0 || m.DstUsed > 0
		of[m.Src] = append(of[m.Src], event{m.Start, m.SrcUsed, i, 0})
		of[m.Dst] = append(of[m.Dst], event{m.End, m.DstUsed, i, 1})
	}
	for _, list := range of {
		// What is sent goes before what is taken at the same time: so nobody can wait for himself.
		slices.SortFunc(list, func(a, b event) int {
			return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.end, b.end), cmp.Compare(a.message, b.message))
		})
		last := int64(0)
		for place, e := range list {
			// A clock that was set can have changed the order of two that were near each other.
			p.turns[e.message][e.end] = turn{place, max(0, e.used-last)}
			last = max(last, e.used)
		}
	}
	return p
}

// describe has a message tell its turns, and what was computed before them, multiplied by compute.
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
