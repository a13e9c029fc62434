package play

import "time"

const (
	// packet is the number of bytes that a line passes at a time, where the platform does not say.
	// Default 9000. Smaller packets share a line more evenly between connections, but the
	// simulation takes longer.
	packet = 9000

	// window is the number of bytes that a connection may have in flight, where the platform does
	// not say. Default 4 MiB: about the limit of Linux's automatic windows.
	window = 4 << 20

	// chunk is the size of the writes of a message between hosts that share a network, in bytes.
	// Default 64 KiB.
	chunk = 64 << 10

	// ahead is the number of receives from one process that are posted at a time. Default 16. More
	// receives take time to search. Fewer than a pair has messages in flight would delay messages.
	ahead = 16

	// turn is the longest sleep of a process that waits, in nanoseconds. Default 5 ms. It is
	// bounded because the end of a message over one forwarder does not wake a thread that waits for
	// another forwarder.
	turn = 5 * time.Millisecond

	// joinTime is the time limit of joining, in nanoseconds of virtual time. Default 1 min.
	joinTime = time.Minute

	// settle is the time between the last rank's join and the first message, in nanoseconds.
	// Default 100 ms: progress threads are idle by then.
	settle = 100 * time.Millisecond

	// standstill is the time without any progress after which the run fails, in nanoseconds.
	// Default 2 min: longer than the time for which links and forwarders may be down.
	standstill = 2 * time.Minute

	// patience is the time for which the job waits for lost links and forwarders, in nanoseconds.
	// Default 10 s, as in real jobs.
	patience = 10 * time.Second
)
