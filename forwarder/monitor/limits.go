package monitor

import "time"

// DefaultPort is where a forwarder shows its status.
const DefaultPort = 7476

// maxStatus bounds what Fetch reads, 16 MiB: thousands of jobs.
const maxStatus = 16 << 20

// How long a client may take: for its request's head (5 s), to take the answer (30 s), and between
// two requests (1 minute). Longer: who is slow, or hostile, keeps a descriptor.
const (
	headerTime = 5 * time.Second
	writeTime  = 30 * time.Second
	idleTime   = time.Minute
)
