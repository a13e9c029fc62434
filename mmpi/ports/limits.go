package ports

import "time"

const (
	// tellTime is the time in which the two ends of a meeting exchange their descriptions, 30 s:
	// both are there by then.
	tellTime = 30 * time.Second

	// longestTold is the largest size of such a description in bytes: 4 MiB, which is half a
	// million processes.
	longestTold = 4 << 20

	// pause is the pause between attempts to meet if the place is taken, because another process
	// meets there, or has not left yet.
	pause = 20 * time.Millisecond

	// tellPause is the pause after a failed attempt to wait for those who look up a name, 500 ms.
	// With a longer one a name is unknown for longer after a restart of the forwarder; with a
	// shorter one a process whose forwarder is gone takes more of its own processor.
	tellPause = 500 * time.Millisecond

	// sameTime is the time for which a dialling process waits at its own forwarder for one whose
	// job names other addresses, 2 s, because these may be addresses of the same forwarder. After
	// that it uses the other addresses. With a longer time connections over two forwarders take
	// longer. With a shorter one a single forwarder on a busy host is taken for two.
	sameTime = 2 * time.Second

	// lookupTime is the time limit of a name's lookup, 2 s: the process that has published it is
	// there already.
	lookupTime = 2 * time.Second

	// answerTime is the time for which a lookup waits for a forwarder's answer beyond the time
	// limit, 2 s. With a shorter one a busy host or a long path seems to be an unreachable
	// forwarder; with a longer one a lookup at a host that does not answer takes longer.
	answerTime = 2 * time.Second

	// takenTime is the time for which publishing a name waits for another process that has
	// published it, 500 ms. With a shorter time no process is found on a busy host; with a longer
	// one each MPI_Publish_name takes longer.
	takenTime = 500 * time.Millisecond
)
