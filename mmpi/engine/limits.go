package engine

import "time"

const (
	// maxCall is the longest name of an MPI function in a report about waiting, in bytes. Default
	// 64; MPI_Neighbor_alltoallw_init_c has 30.
	maxCall = 64

	// lockSpins is how often the lock is tried before the thread sleeps for it. Default 100.
	lockSpins = 100

	// coalesceMost is how many small messages go out with one write at most. Default 32. Trades
	// their latency against system calls.
	coalesceMost = 32

	// coalesceBytes is how many bytes of small messages are held at most, in bytes. Default 16 KiB.
	coalesceBytes = 16 << 10

	// shortNap is how long a thread sleeps while native MPI is waited for, the first shortNaps
	// times, in nanoseconds. Default 5 µs. Nothing wakes the sleeper when it is done; native stages
	// of collectives last microseconds.
	shortNap = 5 * time.Microsecond

	// shortNaps is how many naps are short. Default 64.
	shortNaps = 64

	// longNap is how long a thread sleeps then, in nanoseconds. Default 100 µs.
	longNap = 100 * time.Microsecond

	// byeTimeout bounds the steps of Finish after its barrier, in nanoseconds. Default 10 s: nobody
	// has anything else left to do.
	byeTimeout = 10 * time.Second

	// finishFan is how many processes report to one at the end of the job. Default 32. Trades the
	// work of one process against the levels of the tree.
	finishFan = 32

	// abortTime is how long Abort waits for the links to take its message, in nanoseconds. Default
	// 1 s.
	abortTime = time.Second
)
