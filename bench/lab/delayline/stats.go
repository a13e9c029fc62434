package delayline

import (
	"fmt"
	"strings"
	"time"
)

// Stats are those of one direction since the start or the last reset. Packets are those on the
// line, also where one frame stands for many.
type Stats struct {
	// From and To are the devices.
	From, To string
	// Packets is the number of packets that passed.
	Packets uint64
	// Bytes is the size of their Ethernet frames.
	Bytes uint64
	// Lost counts packets lost at random.
	Lost uint64
	// Dropped counts packets that met a full queue.
	Dropped uint64
	// Oversized counts packets that vanished in the black hole.
	Oversized uint64
	// Cut counts packets that came while the line was cut.
	Cut uint64
	// Full counts frames that met a full memory of the program: it must be 0.
	Full uint64
	// Refused counts frames that the device at the end refused: it must be 0.
	Refused uint64
	// Queue is the longest wait for the line.
	Queue time.Duration
	// LateMedian, Late99 and LateMax tell how long after its time a packet left.
	LateMedian time.Duration
	Late99     time.Duration
	LateMax    time.Duration
	// Look99 and LookMax tell how long the thread was busy and did not look for frames: the
	// recorded time of an arrival may be late by that.
	Look99  time.Duration
	LookMax time.Duration
}

// Bounds of a measurement that counts.
const (
	lateBound = time.Millisecond
	lateShare = 0.25 // of the delay, for the worst packet
	lateFloor = 5 * time.Millisecond
)

// Void returns why a measurement over a line of a delay does not count, or an empty string if it
// does.
func (s *Stats) Void(delay time.Duration) string {
	var why []string
	worst := max(lateFloor, time.Duration(lateShare*float64(delay)))
	if s.Late99 > lateBound {
		why = append(why, fmt.Sprintf("1 %% of the packets left %v late", round(s.Late99)))
	}
	if s.LateMax > worst {
		why = append(why, fmt.Sprintf("a packet left %v late", round(s.LateMax)))
	}
	if s.Look99 > lateBound || s.LookMax > worst {
		why = append(why, fmt.Sprintf("the line did not look for packets for %v", round(s.LookMax)))
	}
	if s.Full > 0 {
		why = append(why, fmt.Sprintf("%d frames found the line's memory full", s.Full))
	}
	if s.Refused > 0 {
		why = append(why, fmt.Sprintf("%d frames were refused by %s", s.Refused, s.To))
	}
	return strings.Join(why, ", ")
}

// String returns the statistics in one line.
func (s *Stats) String() string {
	return fmt.Sprintf("%s > %s: %d packets, %.1f MB; lost %d, dropped by the queue %d, oversized %d, cut %d; queue up to %v; "+
		"late median %v, p99 %v, max %v; looks p99 %v, max %v; memory full %d, refused %d",
		s.From, s.To, s.Packets, float64(s.Bytes)/1e6, s.Lost, s.Dropped, s.Oversized, s.Cut, round(s.Queue),
		round(s.LateMedian), round(s.Late99), round(s.LateMax), round(s.Look99), round(s.LookMax), s.Full, s.Refused)
}

func round(d time.Duration) time.Duration { return d.Round(time.Microsecond) }
