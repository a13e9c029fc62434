package engine

import "time"

const (
	// maxCall is the longest name of an MPI function in a report about waiting, in bytes. Default
	// 64; MPI_Neighbor_alltoallw_init_c has 30.
	maxCall = 64

	// lockSpins is the number of attempts to take the lock before the thread sleeps. Default 100.
	lockSpins = 100

	// coalesceMost is the most small messages that go out with one write. Default 32. Trades their
	// latency against system calls.
	coalesceMost = 32

	// coalesceBytes is the most bytes of small messages that are held, in bytes. Default 16 KiB.
	coalesceBytes = 16 << 10

	// shortNap is the time for which a thread that waits for native MPI sleeps, the first shortNaps
	// times, in nanoseconds. Default 5 µs. Nothing wakes the thread when native MPI is done; native
	// stages of collectives last microseconds.
	shortNap = 5 * time.Microsecond

	// shortNaps is the number of naps that are short. Default 64.
	shortNaps = 64

	// longNap is the time for which a thread sleeps after shortNaps naps, in nanoseconds. Default
	// 100 µs.
	longNap = 100 * time.Microsecond

	// byeTimeout bounds each step of Finish after its first barrier, in nanoseconds; the waits of
	// the second barrier may take the job's patience (Limits.NoRail) longer. Default 10 s: after
	// the first barrier no process has other work to do.
	byeTimeout = 10 * time.Second

	// noticeRing is the number of receives for messages about losses and agreements that are posted
	// at a time. Default 4. Further messages wait in the queue of unexpected ones.
	noticeRing = 4

	// flatGroup is the largest communicator in which each process gives its vote to the coordinator
	// itself, rather than to the first process of its cluster. Default 256. Trades the work of one
	// process, some microseconds for each other one, against two ways between processes of one
	// cluster, over the forwarder.
	flatGroup = 256

	// keptAgreements is the number of freed communicators whose agreements are kept for other
	// processes, in jobs that outlive clusters. Default 1024, a few hundred bytes each.
	// Another process needs one if it has not got the decision yet, and its sender is lost.
	keptAgreements = 1024

	// finishFan is the least number of processes that report to one at the end of the job, if there
	// are so many. Default 32. Trades the work of one process against the levels of the tree.
	finishFan = 32

	// abortTime is the time for which Abort waits for the links to take its message, in
	// nanoseconds. Default 1 s.
	abortTime = time.Second
)
