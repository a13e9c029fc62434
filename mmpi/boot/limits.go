package boot

import "time"

// These are the limits of direct links.
const (
	// meetingTime is the time limit of one attempt to make a direct link: connecting, and proofs of
	// both ends. With a longer one strangers hold connections for longer, with a shorter one
	// attempts fail on a busy host.
	meetingTime = 2 * time.Second

	// directPatience is the time for which MPI_Init waits for all direct links of the process. Then
	// the other pairs begin through the forwarder.
	directPatience = 3 * time.Second

	// portsTried is the number of ports that a rank tries from the given one on: the number of
	// ranks of one node that can listen at one address.
	portsTried = 100

	// maxPending is the largest number of connections whose other end is not known yet. Beyond it
	// the oldest one is closed. It bounds the resources that strangers can take. Ranks that connect
	// all at once and are closed for it retry; those with a link on demand ask again.
	maxPending = 64

	// redialLimit is the time limit of one attempt to connect again to the only forwarder, until
	// its first frame. After this time the engine learns the reason.
	redialLimit = time.Second

	// rejoinSilence is the time limit of the forwarder's silence after that: a restarted forwarder
	// gathers the job first, and pings waiting ranks (joiningPings in forwarder/relay). With a
	// shorter one ranks give it up in turn, so that they are never all there.
	rejoinSilence = 10 * time.Second

	// acceptPause is the pause between attempts to accept after an error, most likely for lack of
	// descriptors.
	acceptPause = 100 * time.Millisecond
)

// recordLimit is the largest number of messages of each direction that a rank records with their
// times: 24 bytes each, so at most 24 MiB each. Beyond it only the matrix is updated.
const recordLimit = 1 << 20

// grace is the time in which the cluster's own launcher, which knows the exit status, may end this
// process when a rank of the cluster ends the job.
const grace = time.Second
