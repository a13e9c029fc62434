package handshake

// roomForFrame is the size of a Challenge or a JointProof in bytes, and a little more: each is made
// for every rank of a job.
const roomForFrame = 320

// maxNotices, maxSpans and maxRefusals bound the text for users, because the other end, or
// strangers, decide how much there is.
const (
	// maxNotices is the number of Notices of a forwarder that a Joiner passes on: one comes after a
	// while, and one after each refusal, so more contain nothing new.
	maxNotices = 10

	// maxSpans is the number of runs of ranks in a list of missing ones; the others are counted.
	maxSpans = 20

	// maxRefusals is the number of different refusals that a Gather remembers, because strangers
	// also cause them.
	maxRefusals = 4
)
