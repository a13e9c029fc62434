package job

import "time"

const (
	// noticeAfterRefusal: ranks that wait are told what is missing so long after one was refused, 1
	// s, since more of them may follow.
	noticeAfterRefusal = time.Second

	// joinsLeast is what the Joins of a job may take, 1 MiB, and joinShare for each of its ranks, 8
	// KiB: an honest one has a few hundred bytes, with a hundred forwarders' names and addresses a
	// few thousand.
	joinsLeast = 1 << 20
	joinShare  = 8 << 10

	// ComesBack is how long a rank is waited for whose link was closed, 3 s: a process that has
	// ended is not there any more, one that lives is back at once. Longer: a dead rank is reported
	// later; shorter: on a busy host one that lives is given up.
	ComesBack = 3 * time.Second

	// MaxBad is how many damaged frames may come from a rank within badTime, 100 in 10 s: those of
	// a bad line. Of a rank that sends more the job fails.
	MaxBad  = 100
	badTime = 10 * time.Second

	// maxOrigins is how many clusters a line of the log names, 16.
	maxOrigins = 16

	// maxGaps is how many links that a job lacks are named at once, 4: more have the same cause, or
	// are for later; maxGapText how many bytes that may take, 1 KiB, which has room for them as a
	// rule.
	maxGaps    = 4
	maxGapText = 1 << 10

	// maxGapNotices is how often another forwarder is heard on the links that it lacks, for a job,
	// 256: some times for each link of the largest trees. What is passed on is bounded by it.
	maxGapNotices = 256
)

// For whom the kernel opens ways. Each connection takes memory at both ends, 64 KiB and what the
// kernel keeps, and is looked at by both.
const (
	// maxPairs is for how many pairs of ranks of different clusters, in a job; of more, none.
	maxPairs = 4096

	// maxPeers is how many ranks of other clusters a rank may have, for the same.
	maxPeers = 256
)
