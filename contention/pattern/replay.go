package pattern

import (
	"fmt"
	"math/big"
	"slices"

	"github.com/leidenzipper/zipper/contention/platform"
	"github.com/leidenzipper/zipper/internal/traffic/trace"
)

// Eager is the size of the longest message, in bytes, that MMPI sends without waiting for the
// receiver.
const Eager = 64 << 10

// Segment is the length of the pieces of longer messages, in bytes. A forwarder sends a piece on
// once it is complete. Over TCP pieces are up to 1 % shorter where that fills packets, and the last
// piece of a message is up to 1/8 longer.
const Segment = 128 << 10

// Replay creates the messages of a recorded trace, to be run on any platform. places has the host
// of each rank there.
//
// The recorded times only determine the order. A message waits for those that its sender had
// finished when it started: the last large one that the sender had sent, and the last one that it
// had received. It does not wait for messages that were still under way, such as others of a set of
// nonblocking sends, nor for sent ones of up to Eager bytes, which do not wait for the receiver.
// The time in between counts as computation and is repeated, multiplied by compute: 0 replays
// communication only, 1 keeps the gaps. If the recording has processor times, messages also have
// each rank's steps and its computing time between them. A trace without messages gives one message
// for each pair of its matrix, all at once.
func Replay(t *trace.Trace, places []string, compute *big.Rat) ([]platform.Message, error) {
	if n := t.Ranks(); n > len(places) {
		return nil, fmt.Errorf("the trace has %d ranks, the platform has room for %d", n, len(places))
	}
	var list []platform.Message
	if len(t.Messages) == 0 {
		m := t.Matrix()
		for _, pair := range sortedPairs(m) {
			list = append(list, message(pair[0], pair[1], big.NewRat(m[pair], 1), places))
		}
		if len(list) == 0 {
			return nil, fmt.Errorf("the trace has no messages")
		}
		return list, nil
	}
	ms := slices.Clone(t.Messages)
	slices.SortStableFunc(ms, func(a, b trace.Message) int {
		if a.Start != b.Start {
			return int(min(max(a.Start-b.Start, -1), 1))
		}
		return int(min(max(a.End-b.End, -1), 1))
	})
	ends, used := newHistory(t.Ranks(), ms), newProcessorTimes(t.Ranks(), ms)
	for i, m := range ms {
		x := message(m.Src, m.Dst, big.NewRat(m.Bytes, 1), places)
		x.Line = m.Line
		last := int64(0)
		for _, d := range []struct {
			of   *history
			list *[]int
		}{{&ends.sent[m.Src], &x.Sent}, {&ends.received[m.Src], &x.After}} {
			if k, ok := d.of.before(ms, m.Start, i); ok {
				*d.list = append(*d.list, k)
				last = max(last, ms[k].End)
			}
		}
		if compute != nil && compute.Sign() > 0 {
			x.Delay = new(big.Rat).Mul(big.NewRat(m.Start-last, 1e9), compute)
			used.describe(&x, i, compute)
		}
		list = append(list, x)
	}
	return list, nil
}

func sortedPairs(m map[[2]int]int64) [][2]int {
	var pairs [][2]int
	for p := range m {
		pairs = append(pairs, p)
	}
	slices.SortFunc(pairs, func(a, b [2]int) int {
		if a[0] != b[0] {
			return a[0] - b[0]
		}
		return a[1] - b[1]
	})
	return pairs
}

// history has a rank's sent messages of more than Eager bytes, or its received messages, sorted by
// end.
type history struct {
	messages []int // indices in the trace's messages
	// next is the index in messages of the first one that had not ended at the times asked so
	// far, which only grow.
	next int
}

type histories struct{ sent, received []history }

func newHistory(ranks int, ms []trace.Message) histories {
	h := histories{make([]history, ranks), make([]history, ranks)}
	for i, m := range ms {
		if m.Bytes > Eager {
			h.sent[m.Src].messages = append(h.sent[m.Src].messages, i)
		}
		h.received[m.Dst].messages = append(h.received[m.Dst].messages, i)
	}
	for _, hs := range [][]history{h.sent, h.received} {
		for r := range hs {
			slices.SortStableFunc(hs[r].messages, func(a, b int) int {
				return int(min(max(ms[a].End-ms[b].End, -1), 1))
			})
		}
	}
	return h
}

// before returns the index in ms of the message of this history that ended last at or before the
// time at, among those with an index below i, so that no cycle can arise. The bool is false if
// there is none.
func (h *history) before(ms []trace.Message, at int64, i int) (int, bool) {
	for h.next < len(h.messages) && ms[h.messages[h.next]].End <= at {
		h.next++
	}
	for k := h.next - 1; k >= 0; k-- {
		if h.messages[k] < i {
			return h.messages[k], true
		}
	}
	return 0, false
}
