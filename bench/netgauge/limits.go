package netgauge

import "time"

// largestSize is the largest message of a pattern if the user names no sizes, in bytes.
const largestSize = 1 << 20

// roundTrips is the number of round trips in one measurement of ping-pong, and burst the number n
// of messages in a parametrized round trip: more is nearer to a rate, fewer to a latency.
const (
	roundTrips = 4
	burst      = 16
)

// lossTimeout, helloTime and dialPause are waiting times of a module: for a packet before it counts
// as lost, and is sent again; for another process that has connected to send its rank; and before
// it dials again a process that does not listen yet.
const (
	lossTimeout = 100 * time.Millisecond
	helloTime   = 5 * time.Second
	dialPause   = 20 * time.Millisecond
)

// verbsMessage is the largest message over an unreliable connection of verbs, in bytes;
// verbsdata.go has the other numbers of the unreliable modules.
const verbsMessage = 64 << 10
