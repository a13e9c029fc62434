package jobenv

import "time"

const (
	// DefaultPort is the forwarder's TCP port, and of its verbs addresses.
	DefaultPort = 7475

	// defaultTimeout is how long a process waits for the other clusters, 60 s: long enough to start
	// them by hand, short enough that a job which is never complete does not hold its nodes.
	defaultTimeout = time.Minute

	// longestOrder is what fits into a variable of the environment, in bytes: 128 KiB with its name.
	longestOrder = 128<<10 - 64

	// maxCluster is the most ranks that a layout may give a cluster: more is a slip of the pen.
	maxCluster = 1 << 20
)

// From these sizes on, in bytes, messages are sent and received in place over verbs: 1 MiB, and
// 128 KiB where registrations are kept. Registering memory costs a system call and some time for
// each page, a copy some time for each byte (docs/infiniband.md).
const (
	inPlace       = 1 << 20
	inPlaceCached = 128 << 10
)
