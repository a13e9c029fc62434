package transfer

import (
	"runtime"
	"time"

	"golang.org/x/sys/unix"
)

// processorTime returns the time that a process or thread has used, by one of its clocks. getrusage
// knows only the time of a thread at the last tick, and a median of short measurements would be 0.
func processorTime(clock int32) (time.Duration, error) {
	var t unix.Timespec
	err := unix.ClockGettime(clock, &t)
	return time.Duration(t.Nano()), err
}

// copyRate returns how fast one thread copies memory that is too large for caches, in bytes/s of
// processor time, because other threads may run as well.
func copyRate() (float64, error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	from, to := make([]byte, copyBytes), make([]byte, copyBytes)
	clear(to[:copy(to, from)]) // now the pages exist
	begin, err := processorTime(unix.CLOCK_THREAD_CPUTIME_ID)
	now, bytes := begin, 0
	for err == nil && now-begin < copyTime {
		bytes += copy(to, from)
		now, err = processorTime(unix.CLOCK_THREAD_CPUTIME_ID)
	}
	return float64(bytes) / (now - begin).Seconds(), err
}
