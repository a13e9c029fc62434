package ports

import "time"

const (
	// tellTime is how long the two ends of a meeting have to tell each other what they are, 30 s:
	// both are there by then.
	tellTime = 30 * time.Second

	// longestTold is how much one of them may tell, in bytes: 4 MiB, which is half a million
	// processes.
	longestTold = 4 << 20

	// pause is between attempts to meet where the place is taken: another process meets there, or
	// one has not left yet.
	pause = 20 * time.Millisecond

	// sameTime is how long a process that dials waits at its own forwarder for one whose job names
	// other addresses, 2 s: perhaps those are addresses of the same forwarder. Then it goes by way
	// of the other addresses. With a longer time a connection over two forwarders takes longer to
	// begin; with a shorter one, on a busy host, one forwarder is taken for two.
	sameTime = 2 * time.Second

	// lookupTime is how long a name is looked up, 2 s: whoever has published it is there already.
	lookupTime = 2 * time.Second

	// takenTime is how long publishing a name waits for somebody else who has published it, 500 ms.
	// A shorter time finds nobody on a busy host; a longer one is what each MPI_Publish_name takes.
	takenTime = 500 * time.Millisecond
)
