package flow

import (
	"errors"
	"fmt"
)

// ErrSequence means that no honest peer sends such a number.
var ErrSequence = errors.New("flow: sequence number out of range")

// Numbers assigns the sequence numbers of a flow, from 1, and handles cumulative acknowledgements.
type Numbers struct {
	last  uint64 // last assigned number
	acked uint64 // the peer has handled all frames up to this one; never above last
}

// Next returns the next number.
func (n *Numbers) Next() uint64 {
	n.last++
	return n.last
}

// Ack handles an acknowledgement; an old one changes nothing. It reports whether it was new.
func (n *Numbers) Ack(ack uint64) (bool, error) {
	if ack > n.last {
		return false, fmt.Errorf("%w: %d acknowledged, %d sent", ErrSequence, ack, n.last)
	}
	if ack <= n.acked {
		return false, nil
	}
	n.acked = ack
	return true, nil
}

// Unacked returns the number of unacknowledged frames.
func (n *Numbers) Unacked() uint64 { return n.last - n.acked }

// Place is the position of a frame in its flow.
type Place int

// These are the positions.
const (
	Next      Place = iota // the frame to be handled now
	Duplicate              // handled before: drop it
	Early                  // frames before it are missing: keep it
)

// Order puts the frames of a flow into order. T is the stored form of an early frame.
type Order[T any] struct {
	taken uint64       // number of frames handled, which is the sequence number of the last one
	acked uint64       // sequence number that was acknowledged last
	early map[uint64]T // frames that have arrived before their predecessors, by sequence number
}

// Place returns the position of a frame by its number.
func (o *Order[T]) Place(seq uint64) (Place, error) {
	switch {
	case seq == 0:
		return 0, fmt.Errorf("%w: 0", ErrSequence)
	case seq == o.taken+1:
		return Next, nil
	case seq <= o.taken:
		return Duplicate, nil
	case seq-o.taken > MaxEarly:
		return 0, fmt.Errorf("%w: %d while %d is next", ErrSequence, seq, o.taken+1)
	}
	if _, ok := o.early[seq]; ok {
		return Duplicate, nil
	}
	return Early, nil
}

// Keep stores the frame f with sequence number seq, which has arrived before its predecessors.
func (o *Order[T]) Keep(seq uint64, f T) {
	if o.early == nil {
		o.early = map[uint64]T{}
	}
	o.early[seq] = f
}

// Take records that the next frame in order is handled.
func (o *Order[T]) Take() { o.taken++ }

// Pop returns the kept frame that is next now, if it is there.
func (o *Order[T]) Pop() (f T, ok bool) {
	if len(o.early) == 0 {
		return f, false
	}
	f, ok = o.early[o.taken+1]
	delete(o.early, o.taken+1)
	return f, ok
}

// Ack returns the cumulative acknowledgement to send, and records it as sent.
func (o *Order[T]) Ack() uint64 {
	o.acked = o.taken
	return o.acked
}

// Unacknowledged returns the number of handled frames that were not acknowledged to the peer.
func (o *Order[T]) Unacknowledged() uint64 { return o.taken - o.acked }
