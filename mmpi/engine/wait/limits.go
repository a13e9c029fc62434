package wait

import "time"

const (
	// TickEvery is how long nobody has polled when the progress thread takes over, in nanoseconds.
	// Default 2 ms, up to AckEvery after sleeps of milliseconds. Trades the delay of messages that
	// come while the program computes against interrupts of the program.
	TickEvery = 2 * time.Millisecond

	// AckEvery is the time between two ticks, in nanoseconds. Default 10 ms. Trades how long a
	// sender keeps what is not acknowledged against frames that carry nothing else.
	AckEvery = 10 * time.Millisecond

	// watchFor is the longest sleep of the progress thread on the links, in nanoseconds. Default 20
	// ms, so that ticks go on.
	watchFor = 20 * time.Millisecond

	// idleFor is its longest sleep where a tick would find nothing to do but to notice that a link
	// is silent, in nanoseconds. Default 160 ms. Trades how soon that is noticed against interrupts
	// of the program.
	idleFor = 160 * time.Millisecond

	// slack is the timer slack of the progress thread, in nanoseconds. Default 50 µs.
	slack = 50 * time.Microsecond

	// FlushAfter is how long messages may be held that are to go out together, in nanoseconds.
	// Default 200 µs. Trades their latency where the program makes no further call against system
	// calls.
	FlushAfter = 200 * time.Microsecond

	// keptFor is the longest sleep that keeps the thread's P, in nanoseconds. Default 5 ms: a
	// program may have blocked the signal that would end a longer one.
	keptFor = 5 * time.Millisecond

	// unwakedFor is the longest sleep of a thread that others cannot wake, because the process has
	// no descriptor left for it, in nanoseconds. Default 1 ms.
	unwakedFor = time.Millisecond

	// contendedFor is how long the progress thread waits when another thread has the lock, in
	// nanoseconds. Default 100 µs.
	contendedFor = 100 * time.Microsecond
)
