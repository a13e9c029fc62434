package budget

const (
	// fewMemory is how much a machine is taken to have that does not say, 1 GiB.
	fewMemory = 1 << 30

	// Share: a forwarder keeps at most one part of so many of the machine's memory, unless told
	// otherwise.
	Share = 4

	// JobLeast is what a job may have, 16 MiB, and LinkShare for each of its links if that is more,
	// 256 KiB: a long segment. More: a destination that does not read holds back those who send to
	// it, and to others, later; less: a forwarder takes less.
	JobLeast  = 16 << 20
	LinkShare = 256 << 10

	// JoiningMost is what all links together may have that are in no job yet, 64 MiB, or an eighth
	// of the process's if that is less.
	JoiningMost  = 64 << 20
	JoiningShare = 8
)
