package doctor

import "time"

// dialTimeout bounds one attempt to connect, and the answer, and verbsTimeout one over an adapter,
// which takes some seconds to give up by itself. Longer times would only make the user wait for
// each address that is silent.
const (
	dialTimeout  = 3 * time.Second
	verbsTimeout = 15 * time.Second
)

// gatherTimeout is how long the probes' job may take to gather. Forwarders that do not reach each
// other try for nearly as long, and the user waits.
const gatherTimeout = 10 * time.Second

// bufferShare is the size of the kernel's buffers that fill a path, as a multiple of the bytes in
// flight on it, 1.4: they hold the bytes in flight, and those behind lost packets that are
// unacknowledged. farAway is the round trip from which on that matters, 5 ms: a busy host nearby
// takes less to answer.
const (
	bufferShare = 1.4
	farAway     = 5 * time.Millisecond
)

// enoughLocked is the memory in bytes that a rank locks for one link over verbs and a few large
// messages.
const enoughLocked = 64 << 20

// enoughCores is the number of cores on a host below which the doctor warns: with fewer even the
// ranks of two clusters of two on one host share cores while they wait.
const enoughCores = 4
