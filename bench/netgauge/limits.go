package netgauge

import "time"

// largestSize is the largest message of a pattern if the user names no sizes, bytes.
const largestSize = 1 << 20

// roundTrips is how many round trips one measurement of ping-pong is, and burst the number n of
// messages in a parametrized round trip: more is nearer to a rate, fewer to a latency.
const (
	roundTrips = 4
	burst      = 16
)

// How long a module waits: for a packet before it is taken to be lost, and sent again; for another
// process that has connected to say which it is; and before it dials again one that does not listen
// yet.
const (
	lossTimeout = 100 * time.Millisecond
	helloTime   = 5 * time.Second
	dialPause   = 20 * time.Millisecond
)

// verbsMessage is the largest message over unreliable verbs, bytes; verbsdata.go has the rest of
// that module's numbers.
const verbsMessage = 64 << 10
