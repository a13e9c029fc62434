package flow

import (
	"fmt"
	"time"
)

// Segment is a piece of a large message that was sent.
type Segment struct {
	Request uint64 // the sender's
	Offset  int64
	Bytes   int
}

// Lane is the sender's end of a flow's large messages over one rail: what is on its way, to be
// replayed if the rail is lost, and how fast it goes. An epoch is the time between two losses.
type Lane struct {
	epoch uint16
	sent  uint64    // bytes of this epoch
	last  uint64    // of these before the last segment
	acked uint64    // of these
	out   []Segment // not acknowledged, in order; out[0] up to cut bytes
	cut   int

	pace Pace
}

// NewLane starts in epoch 1.
func NewLane() Lane { return Lane{epoch: 1} }

// Epoch is what the lane's frames carry.
func (l *Lane) Epoch() uint16 { return l.epoch }

// OnWay is the payload in bytes sent and not acknowledged.
func (l *Lane) OnWay() int { return int(l.sent - l.acked) }

// Rate is the measured speed in bytes per second; 0: not known yet.
func (l *Lane) Rate() float64 { return l.pace.Rate() }

// Send counts a segment that starts on its way at a time.
func (l *Lane) Send(s Segment, now time.Duration) {
	if l.sent == l.acked {
		l.pace.Begin(l.acked, now)
	}
	l.last = l.sent
	l.sent += uint64(s.Bytes)
	l.out = append(l.out, s)
}

// Place is where in the epoch the last segment begins: its frame says so, because those of a lane
// may overtake each other where several connections are between two forwarders.
func (l *Lane) Place() uint64 { return l.last }

// Landed takes an acknowledgement: the payload from the beginning of the epoch that has landed
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

// Reset begins a new epoch and returns what may not have landed.
func (l *Lane) Reset() []Segment {
	lost := l.out
	*l = Lane{epoch: l.epoch + 1}
	return lost
}

// Arrivals is the receiver's end of a Lane.
type Arrivals struct {
	epoch  uint16
	landed Cover
	told   int64
}

// Count counts a segment that has landed, by its place. One of an epoch that is over changes
// nothing: the sender has sent all of that again.
func (a *Arrivals) Count(epoch uint16, place uint64, bytes int) error {
	switch since := int16(epoch - a.epoch); {
	case since < 0:
		return nil
	case since > 0:
		*a = Arrivals{epoch: epoch}
	}
	if place > maxPlace {
		return fmt.Errorf("flow: a segment at %d of its lane", place)
	}
	_, err := a.landed.Add(int64(place), int64(place)+int64(bytes))
	return err
}

// Untold is the payload in bytes that the sender does not know to have landed.
func (a *Arrivals) Untold() int { return int(a.landed.front - a.told) }

// Tell returns what the sender should hear, and marks it as told.
func (a *Arrivals) Tell() (epoch uint16, landed uint64) {
	a.told = a.landed.front
	return a.epoch, uint64(a.told)
}

// Share is how much of a window a lane may fill: in proportion to its rate, those not known
// counting as the mean of the known.
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
