package flow

import (
	"errors"
	"fmt"
)

// ErrSequence: a number that no honest peer sends.
var ErrSequence = errors.New("flow: sequence number out of range")

// Numbers gives the frames of a flow their numbers, from 1, and takes cumulative acknowledgements.
type Numbers struct {
	last  uint64 // last number given
	acked uint64 // all up to this one have been taken by the peer; never above last
}

// Next gives the next number.
func (n *Numbers) Next() uint64 {
	n.last++
	return n.last
}

// Ack takes an acknowledgement; an old one changes nothing. It reports whether it was news.
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

// Unacked is how many frames are not acknowledged.
func (n *Numbers) Unacked() uint64 { return n.last - n.acked }

// Place says where a frame stands in its flow.
type Place int

// The places.
const (
	Next      Place = iota // the frame to be handled now
	Duplicate              // handled before: drop it
	Early                  // some before it are missing: keep it
)

// Order puts the frames of a flow into order. T is what is kept of an early frame.
type Order[T any] struct {
	taken uint64
	told  uint64
	early map[uint64]T
}

// Place classifies a frame by its number.
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

// Keep stores an early frame.
func (o *Order[T]) Keep(seq uint64, f T) {
	if o.early == nil {
		o.early = map[uint64]T{}
	}
	o.early[seq] = f
}

// Take counts the next frame as handled.
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

// Ack is the cumulative acknowledgement to send, and marks it as told.
func (o *Order[T]) Ack() uint64 {
	o.told = o.taken
	return o.told
}

// Untold is how many taken frames the peer has not been told about.
func (o *Order[T]) Untold() uint64 { return o.taken - o.told }
