package monitor

import "time"

// DefaultPort is where a forwarder shows its status.
const DefaultPort = 7476

// maxStatus bounds what Fetch reads, 16 MiB: thousands of jobs.
const maxStatus = 16 << 20

// How long a client may take. Longer: who is slow, or hostile, keeps a descriptor.
const (
	headerTime = 5 * time.Second  // for its request's head
	writeTime  = 30 * time.Second // to take the answer
	idleTime   = time.Minute      // until the next request
)
