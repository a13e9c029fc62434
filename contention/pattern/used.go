package pattern

import (
	"cmp"
	"math/big"
	"slices"

	"github.com/leidenzipper/zipper/traffic/trace"
)

// processorTimes are what ranks had used at their events, as recorded.
type processorTimes struct {
	ms    []trace.Message
	known bool
	of    [][]usedAt // by rank, in order
	begun []int      // by rank: the message sent last, plus 1; 0: none
}

type usedAt struct{ at, used int64 }

func newProcessorTimes(ranks int, ms []trace.Message) *processorTimes {
	p := &processorTimes{ms: ms, of: make([][]usedAt, ranks), begun: make([]int, ranks)}
	for _, m := range ms {
		p.known = p.known || m.SrcUsed > 0 || m.DstUsed > 0
		p.of[m.Src] = append(p.of[m.Src], usedAt{m.Start, m.SrcUsed})
		p.of[m.Dst] = append(p.of[m.Dst], usedAt{m.End, m.DstUsed})
	}
	for _, list := range p.of {
		slices.SortFunc(list, func(a, b usedAt) int {
			return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.used, b.used))
		})
		for i := 1; i < len(list); i++ { // clocks have been set
			list[i].used = max(list[i].used, list[i-1].used)
		}
	}
	return p
}

// at is what a rank had used at a time; between two events as if it had used it evenly.
func (p *processorTimes) at(rank int, t int64) int64 {
	list := p.of[rank]
	i, found := slices.BinarySearchFunc(list, t, func(e usedAt, t int64) int { return cmp.Compare(e.at, t) })
	switch {
	case found:
		return list[i].used
	case i == len(list):
		return list[i-1].used
	}
	a, b := usedAt{}, list[i]
	if i > 0 {
		a = list[i-1]
	}
	return a.used + int64(float64(b.used-a.used)*float64(t-a.at)/float64(b.at-a.at))
}

// before is the processor time that the sender of a message used before it: since the last message
// that it had waited for had ended, and since it had begun its message before. follows-1 is that
// message.
func (p *processorTimes) before(m trace.Message, last int64) (work *big.Rat, follows int) {
	if !p.known {
		return nil, 0
	}
	follows = p.begun[m.Src]
	since := p.at(m.Src, last)
	if follows > 0 {
		since = max(since, p.ms[follows-1].SrcUsed)
	}
	return big.NewRat(max(0, m.SrcUsed-since), 1e9), follows
}
