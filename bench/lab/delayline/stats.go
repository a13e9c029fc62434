package delayline

import (
	"fmt"
	"strings"
	"time"
)

// Stats of one direction since the start or the last reset. Packets are those on the line, also
// where one frame stands for many.
type Stats struct {
	From, To   string        // devices
	Packets    uint64        // carried
	Bytes      uint64        // of their Ethernet frames
	Lost       uint64        // by chance
	Dropped    uint64        // by the full queue
	Oversized  uint64        // into the black hole
	Cut        uint64        // while the line was cut
	Full       uint64        // frames that found the program's memory full: has to be 0
	Refused    uint64        // frames that the device at the end did not take: has to be 0
	Queue      time.Duration // longest wait for the line
	LateMedian time.Duration // how long after its time a packet left
	Late99     time.Duration
	LateMax    time.Duration
	// how long the input was not looked at while the thread was busy: so late may an arrival be
	// noted
	Look99  time.Duration
	LookMax time.Duration
}

// Bounds of a measurement that counts.
const (
	lateBound = time.Millisecond
	lateShare = 0.25 // of the delay, for the worst packet
	lateFloor = 5 * time.Millisecond
)

// Void says why what was measured over a line of a delay does not count; empty: it does.
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

// String is one line.
func (s *Stats) String() string {
	return fmt.Sprintf("%s > %s: %d packets, %.1f MB; lost %d, dropped by the queue %d, oversized %d, cut %d; queue up to %v; "+
		"late median %v, p99 %v, max %v; looks p99 %v, max %v; memory full %d, refused %d",
		s.From, s.To, s.Packets, float64(s.Bytes)/1e6, s.Lost, s.Dropped, s.Oversized, s.Cut, round(s.Queue),
		round(s.LateMedian), round(s.Late99), round(s.LateMax), round(s.Look99), round(s.LookMax), s.Full, s.Refused)
}

func round(d time.Duration) time.Duration { return d.Round(time.Microsecond) }
