package boot

import "time"

// Policy of direct links.
const (
	// meetingTime is for one attempt to make a direct link, connecting and proofs of both ends. A
	// longer one keeps those who are nobody longer, a shorter one fails on a busy host.
	meetingTime = 2 * time.Second

	// directPatience is how long MPI_Init waits for all direct links of the process; then the rest
	// begins through the forwarder.
	directPatience = 3 * time.Second

	// portsTried is how many ports a rank tries from the one that is named: as many ranks of one
	// node as can listen at one address.
	portsTried = 100

	// maxPending is how many connections at a time may be there whose other end is not known yet:
	// of more the oldest goes. It bounds what strangers can make the process hold; ranks that come
	// all at once and are closed for it come again.
	maxPending = 64

	// redialLimit is how long one attempt to connect again to the only forwarder takes at most, and
	// how long the forwarder may say nothing then. So often the engine learns why the forwarder is
	// not reached. And if a frame was damaged on its way, it is said again before the forwarder
	// gives this process up.
	redialLimit = time.Second

	// anewSilence is how long a forwarder of a job of several hops may say nothing then: one that
	// was started again gathers the job first, and pings those that wait.
	anewSilence = 10 * time.Second

	// acceptPause is between attempts to accept where that fails, most likely for want of
	// descriptors.
	acceptPause = 100 * time.Millisecond
)

// recordLimit is how many messages of each direction a rank keeps with their times: 24 bytes each,
// so 24 MiB each at most. Beyond it only the matrix goes on.
const recordLimit = 1 << 20

// grace is how long the cluster's own launcher has to end this process when a rank of the cluster
// ends the job: it knows the exit status.
const grace = time.Second
