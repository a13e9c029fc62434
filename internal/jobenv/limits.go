package jobenv

import "time"

const (
	// DefaultPort is the TCP port of a forwarder, and of its verbs addresses.
	DefaultPort = 7475

	// defaultTimeout is the time for which a process waits for the other clusters, 60 s: long
	// enough to start them by hand, short enough that a job which is never complete does not hold
	// its nodes.
	defaultTimeout = time.Minute

	// defaultPatience is the time for which a rank out of reach is waited for, 60 s: longer than a
	// switch takes to restart. Longer: after a power failure of a host the other ranks wait longer;
	// shorter: an interrupted network ends the job.
	defaultPatience = time.Minute

	// longestOrder is the largest length of an order of ranks, in bytes: Linux's limit of 128 KiB
	// for an environment variable, less 64 for its name.
	longestOrder = 128<<10 - 64

	// maxOriginWord is the largest length of a user's name or a batch job's id, in bytes.
	maxOriginWord = 64

	// maxCluster is the largest number of ranks of a cluster in a layout: a larger one is a
	// mistake.
	maxCluster = 1 << 20

	// maxAppnum is the largest number of a program in MPI_APPNUM: a larger one, beyond the numbers
	// of clusters and processes, is a mistake.
	maxAppnum = 1 << 20
)

// These are the smallest sizes of messages, in bytes, that are sent and received in place over
// verbs: 1 MiB, and 128 KiB where registrations are kept. Registering memory costs a system call
// and some time for each page, a copy some time for each byte (docs/howto/infiniband.md).
const (
	inPlace       = 1 << 20
	inPlaceCached = 128 << 10
)

// bitsOfLanguage is the assumed entropy of a letter of a sentence, in bits: Shannon's estimate for
// English is 1 to 1.5 (Prediction and Entropy of Printed English, 1951), for a list of words more.
const bitsOfLanguage = 2

// longestPrivate is the largest part of a file with a secret that is read, in bytes.
const longestPrivate = 64 << 10
