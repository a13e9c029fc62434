package wait

import "time"

const (
	// TickEvery is the time without polls after which the progress thread takes over, in
	// nanoseconds. Default 2 ms, up to AckEvery after sleeps of milliseconds. With a longer time
	// messages that arrive while the program computes are delayed; with a shorter one the program
	// is interrupted more often.
	TickEvery = 2 * time.Millisecond

	// AckEvery is the time between two ticks, in nanoseconds. Default 10 ms. With a longer time a
	// sender keeps unacknowledged data longer; with a shorter one there are more frames that only
	// acknowledge.
	AckEvery = 10 * time.Millisecond

	// watchFor is the longest sleep of the progress thread on the links, in nanoseconds. Default 20
	// ms, so that ticks continue.
	watchFor = 20 * time.Millisecond

	// idleFor is its longest sleep if a tick would only have to detect silent links, in
	// nanoseconds. Default 160 ms. With a longer time that is detected later; with a shorter one
	// the program is interrupted more often.
	idleFor = 160 * time.Millisecond

	// slack is the timer slack of the progress thread, in nanoseconds. Default 50 µs.
	slack = 50 * time.Microsecond

	// FlushAfter is the time for which messages may be held to go out together, in nanoseconds.
	// Default 200 µs. A longer time delays them if the program makes no further call; a shorter one
	// costs system calls.
	FlushAfter = 200 * time.Microsecond

	// keptFor is the longest sleep that keeps the thread's P, in nanoseconds. Default 5 ms: a
	// program may have blocked the signal that would end a longer one.
	keptFor = 5 * time.Millisecond

	// unwakedFor is the longest sleep of a thread that others cannot wake, because the process has
	// no descriptor left for it, in nanoseconds. Default 1 ms.
	unwakedFor = time.Millisecond

	// contendedFor is the time for which the progress thread waits if another thread has the lock,
	// in nanoseconds. Default 100 µs.
	contendedFor = 100 * time.Microsecond
)
