package play

import "time"

const (
	// packet is what lines pass at a time where the platform does not say, in bytes. Default 9000.
	// Trades how finely connections share a line against the time that a simulation takes.
	packet = 9000

	// window is what a connection may have on its way where the platform does not say, in bytes.
	// Default 4 MiB: what Linux lets windows grow to, about.
	window = 4 << 20

	// chunk is what a message inside a cluster is written in, in bytes. Default 64 KiB.
	chunk = 64 << 10

	// ahead is how many receives from one process are posted at a time. Default 16. More only takes
	// time to look through them; fewer than the messages of a pair that are under way would have
	// these wait.
	ahead = 16

	// turn is how long a process that waits sleeps at most, in nanoseconds. Default 5 ms. The end
	// of a message over one forwarder does not wake who waits for another one.
	turn = 5 * time.Millisecond

	// joinTime is how long ranks have to join, in nanoseconds. Default 1 min, of virtual time.
	joinTime = time.Minute

	// settle is the time between the last rank's joining and the first message, in nanoseconds.
	// Default 100 ms: progress threads are at rest by then.
	settle = 100 * time.Millisecond

	// standstill is how long nothing moves until the messages are given up, in nanoseconds. Default
	// 2 min: longer than links and forwarders that come back are waited for.
	standstill = 2 * time.Minute

	// patience is the job's, with what is lost. Default 10 s, as jobs have it.
	patience = 10 * time.Second
)
