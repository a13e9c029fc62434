package budget

const (
	// fewMemory is the assumed memory of a machine that does not tell it, 1 GiB.
	fewMemory = 1 << 30

	// Share is the default quotient of the machine's memory and the forwarder's.
	Share = 4

	// JobLeast is the budget of a job, 16 MiB, or LinkShare for each of its links if that is more,
	// 256 KiB: two segments. With a larger budget a destination that does not read delays its
	// senders later; with a smaller one a forwarder takes less memory.
	JobLeast  = 16 << 20
	LinkShare = 256 << 10

	// JoiningMost is the budget of all links together that belong to no job yet, 64 MiB, or an
	// eighth of the process's budget if that is less.
	JoiningMost  = 64 << 20
	JoiningShare = 8
)
