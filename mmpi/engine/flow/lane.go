package flow

import (
	"fmt"
	"time"
)

// Segment is a piece of a large message that was sent.
type Segment struct {
	Request uint64 // handle of the sender's request
	Offset  int64  // offset of the piece in the message, in bytes
	Bytes   int    // length of the piece
}

// Lane is the sender's end of a flow's large messages over one rail: the segments in flight, which
// are sent again if the rail is lost, and their rate. An epoch is the time between two losses of
// the rail, or of the rail's way to the receiver; epochs are numbered from 1.
type Lane struct {
	epoch uint16 // number of the current epoch
	sent  uint64 // bytes sent in this epoch
	last  uint64 // bytes sent before the last segment
	acked uint64 // bytes acknowledged in this epoch
	// out has the unacknowledged segments in order. The first cut bytes of out[0] are acknowledged.
	out []Segment
	cut int

	pace Pace // measured rate of the acknowledgements
}

// NewLane returns a Lane in epoch 1.
func NewLane() Lane { return Lane{epoch: 1} }

// Epoch returns the epoch for the lane's frames.
func (l *Lane) Epoch() uint16 { return l.epoch }

// InFlight returns the number of payload bytes sent and not acknowledged.
func (l *Lane) InFlight() int { return int(l.sent - l.acked) }

// Rate returns the measured rate in bytes per second, or 0 if it is not known yet.
func (l *Lane) Rate() float64 { return l.pace.Rate() }

// Send records a segment that is sent now and not yet acknowledged.
func (l *Lane) Send(s Segment, now time.Duration) {
	if l.sent == l.acked {
		l.pace.Begin(l.acked, now)
	}
	l.last = l.sent
	l.sent += uint64(s.Bytes)
	l.out = append(l.out, s)
}

// Place returns the position of the last segment in the epoch. Its frame has the position, because
// segments of a lane may overtake each other if there are several connections between two
// forwarders.
func (l *Lane) Place() uint64 { return l.last }

// Landed handles an acknowledgement: the payload from the beginning of the epoch that has landed
// without a gap. One of another epoch changes nothing.
func (l *Lane) Landed(epoch uint16, bytes uint64, now time.Duration) error {
	if epoch != l.epoch || bytes <= l.acked {
		return nil
	}
	if bytes > l.sent {
		return fmt.Errorf("flow: %d bytes landed, %d sent", bytes, l.sent)
	}
	n := int(bytes - l.acked)
	l.acked = bytes
	k := 0
	for ; n > 0; k++ {
		left := l.out[k].Bytes - l.cut
		if n < left {
			l.cut += n
			break
		}
		n -= left
		l.cut = 0
	}
	l.out = append(l.out[:0], l.out[k:]...)
	l.pace.Acked(l.acked, now)
	return nil
}

// Reset begins a new epoch and returns the segments that may not have landed.
func (l *Lane) Reset() []Segment {
	lost := l.out
	*l = Lane{epoch: l.epoch + 1}
	return lost
}

// Arrivals is the receiver's end of a Lane.
type Arrivals struct {
	epoch  uint16 // the sender's epoch in which the counted segments were sent; 0: none has landed
	landed Cover  // bytes of the epoch that have landed
	acked  int64  // bytes of the epoch that were acknowledged
}

// Count counts a segment that has landed, by its position. One of an earlier epoch changes nothing,
// because the sender has sent all of that again.
func (a *Arrivals) Count(epoch uint16, place uint64, bytes int) error {
	switch since := int16(epoch - a.epoch); {
	case since < 0:
		return nil
	case since > 0:
		*a = Arrivals{epoch: epoch}
	}
	if place > maxPlace {
		return fmt.Errorf("flow: a segment at byte %d of its lane: out of range", place)
	}
	_, err := a.landed.Add(int64(place), int64(place)+int64(bytes))
	return err
}

// Unacknowledged returns the number of landed payload bytes that were not acknowledged to the
// sender.
func (a *Arrivals) Unacknowledged() int { return int(a.landed.front - a.acked) }

// Tell returns the acknowledgement to send, and records it as sent.
func (a *Arrivals) Tell() (epoch uint16, landed uint64) {
	a.acked = a.landed.front
	return a.epoch, uint64(a.acked)
}

// Share returns the part of a window that a lane may fill: in proportion to its rate, where unknown
// rates count as the mean of the known ones.
func Share(window int, lane *Lane, all []*Lane) int {
	sum, known := 0.0, 0
	for _, l := range all {
		if l.pace.rate > 0 {
			sum += l.pace.rate
			known++
		}
	}
	if known == 0 {
		return window / max(1, len(all))
	}
	mean := sum / float64(known)
	r := lane.pace.rate
	if r == 0 {
		r = mean
	}
	return int(float64(window) * r / (sum + mean*float64(len(all)-known)))
}
