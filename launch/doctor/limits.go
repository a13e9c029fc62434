package doctor

import "time"

// How long one attempt to connect, and the answer, may take. Longer only makes the user wait for
// each address that is silent. An adapter takes some seconds to give up by itself.
const (
	dialTimeout  = 3 * time.Second
	verbsTimeout = 15 * time.Second
)

// gatherTimeout is how long the probes' job may take to gather: forwarders that do not reach each
// other try for nearly so long, and their users wait.
const gatherTimeout = 10 * time.Second

// bufferShare: a connection fills a path if the kernel holds so many times what is on it, 1.4: what
// is on its way, and what is not acknowledged yet of lost packets. farAway is from which round trip
// on that matters, 5 ms: longer than an answer takes on a busy host nearby.
const (
	bufferShare = 1.4
	farAway     = 5 * time.Millisecond
)

// enoughLocked is what a rank locks for one link over verbs and a few large messages, bytes.
const enoughLocked = 64 << 20

// enoughCores is from how many cores on a host is not warned about: with fewer even the ranks of
// two clusters of two on one host share cores while they wait.
const enoughCores = 4
