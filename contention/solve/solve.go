// Package solve runs transfers through time. The rates are those of a sharing rule for the
// transfers under way, and are computed again whenever a transfer starts or finishes. It is the
// step solver of Martinasso and Méhaut with start times, dependencies and any rule. Times are in
// seconds, sizes in bytes.
package solve

import (
	"github.com/leidenzipper/zipper/contention/num"
	"github.com/leidenzipper/zipper/contention/sharing"
)

// Transfer is one message, or one stage or stripe of a message.
type Transfer[T any] struct {
	Name string // name of the transfer for people
	Flow int    // index into Network.Flows
	// Bytes is the size in bytes, 0 or more.
	Bytes T
	// Start is the earliest start. After has the transfers that must have finished, Sent those of
	// the same sender with which it must have finished. By the rule buffered a sender has finished
	// with a transfer when at most sharing.Flow.Socket bytes of it are unsent, by other rules when
	// the transfer has finished.
	Start       T
	After, Sent []int
	// Delay is the time between the start and the first byte (handshake, compute time). Tail is the
	// time between the last byte on the slowest resource and the finish (latency, draining of a
	// pipeline).
	Delay, Tail T
	// Handshake is the part at the end of Delay in which a request goes to the receiver and the
	// go-ahead comes back. By the rule buffered both, and the first byte, also wait for the bytes
	// that the connections of the flow and of the reverse path hold (sharing.Flow.Socket).
	Handshake T
}

// Options are the options of a run. The zero value is exact and records nothing.
type Options struct {
	// Record keeps every step. It needs memory for each active transfer and step, so it should be
	// off for patterns of more than some thousand transfers.
	Record bool
	// Grain lets close events be handled at once: a transfer may end early by this fraction of its
	// duration, and start early by this fraction of the duration expected from the load at that
	// time. The number of steps is at most about ln(longest/shortest)/Grain, instead of the number
	// of transfers. With 0 each event is handled on its own. It is at most 0.1.
	Grain float64
}

// Step is a span of time in which all rates are constant.
type Step[T any] struct {
	From, To T                 // times in seconds
	Active   []int             // indices of the transfers under way
	Rate     []T               // rate of each of Active in bytes/s
	Limits   [][]sharing.Limit // limits of the rate of each of Active
}

// Share is time for which a resource limited a transfer.
type Share[T any] struct {
	Limit sharing.Limit // resource that limited the transfer
	Time  T             // time in seconds
}

// Result is the result of a run. Slices are per transfer unless they say otherwise.
type Result[T any] struct {
	Start, Finish []T       // Start is before Delay, Finish after Tail
	Steps         []Step[T] // steps of the run; empty unless Options.Record is set
	// Limited has the resources that limited a transfer. Steps that several resources limit count
	// for each in equal parts, so the times add up to the time in which the transfer's bytes moved.
	Limited [][]Share[T]
	// Used has the units taken of each resource, by its index, to be divided by
	// capacity*makespan.
	Used     []T
	Makespan T   // last Finish in seconds
	Events   int // number of times that the rule computed rates
	// Overload has the resources to which the rule gave more than their capacity; empty unless
	// Options.Record is set, and by the rule buffered.
	Overload []sharing.Overload[T]
}

// Run computes the times of the transfers on network n by a sharing rule. It returns an error for
// bad indices, negative sizes or times, and circular dependencies, if the rule fails, and as soon
// as the rule gives an active transfer the rate 0, or, with Buffered, lets no bytes move.
func Run[T num.Number[T]](n *sharing.Network[T], transfers []Transfer[T], rule sharing.Rule[T],
	o Options) (*Result[T], error) {
	_, buffered := rule.(sharing.Buffered[T])
	s, err := newState(n, transfers, o, buffered)
	if err != nil {
		return nil, err
	}
	if buffered {
		return s.result, runBuffered(s)
	}
	for s.finished < len(transfers) {
		if err := s.step(rule); err != nil {
			return nil, err
		}
	}
	s.result.Overload = s.overloads()
	return s.result, nil
}
