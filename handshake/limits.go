package handshake

// roomForFrame is what a Challenge or a JointProof takes, in bytes, and a little more: each is made
// for every rank of a job.
const roomForFrame = 320

// What one end tells people is bounded, because the other end, or strangers, decide how much there
// is.
const (
	// maxTold is how many Notices of a forwarder a Joiner passes on: one comes after a while, and
	// one after each refusal, so more tell nothing new.
	maxTold = 10

	// maxSpans is how many runs of ranks a list of missing ones has; the rest is counted.
	maxSpans = 20

	// maxRefusals is how many different refusals a Gather remembers: strangers cause them too.
	maxRefusals = 4
)
