package jobenv

import "time"

const (
	// DefaultPort is the forwarder's TCP port, and of its verbs addresses.
	DefaultPort = 7475

	// defaultTimeout is how long a process waits for the other clusters, 60 s: long enough to start
	// them by hand, short enough that a job which is never complete does not hold its nodes.
	defaultTimeout = time.Minute

	// defaultPatience is how long a rank out of reach is waited for, 60 s: longer than a switch
	// takes to start again. Longer: a host that has lost its power keeps the others waiting;
	// shorter: a cut network ends the job.
	defaultPatience = time.Minute

	// longestOrder is what fits into a variable of the environment, in bytes: 128 KiB with its
	// name.
	longestOrder = 128<<10 - 64

	// maxOriginWord is how long a user's name, or a batch job's id, may be, in bytes.
	maxOriginWord = 64

	// maxCluster is the most ranks that a layout may give a cluster: more is a slip of the pen.
	maxCluster = 1 << 20

	// maxAppnum is the largest number of a program in MPI_APPNUM: as many programs as clusters and
	// processes would be a slip of the pen.
	maxAppnum = 1 << 20
)

// From these sizes on, in bytes, messages are sent and received in place over verbs: 1 MiB, and
// 128 KiB where registrations are kept. Registering memory costs a system call and some time for
// each page, a copy some time for each byte (docs/howto/infiniband.md).
const (
	inPlace       = 1 << 20
	inPlaceCached = 128 << 10
)

// bitsOfLanguage is what a letter of a sentence is counted for, in bits: Shannon's estimate for
// English is 1 to 1.5 (Prediction and Entropy of Printed English, 1951), for a list of words more.
const bitsOfLanguage = 2

// longestPrivate is the most that is read of a file with a secret, in bytes.
const longestPrivate = 64 << 10
