package transfer

import (
	"runtime"
	"time"

	"golang.org/x/sys/unix"
)

// processorTime is what a process or thread has used so far, by one of its clocks: getrusage knows
// what a thread had used at the last tick only, and a median of short measurements is then 0.
func processorTime(clock int32) (time.Duration, error) {
	var t unix.Timespec
	err := unix.ClockGettime(clock, &t)
	return time.Duration(t.Nano()), err
}

// copyRate is how fast one thread copies what is too large for caches, bytes/s of processor time:
// others may run, too.
func copyRate() (float64, error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	from, to := make([]byte, copyBytes), make([]byte, copyBytes)
	clear(to[:copy(to, from)]) // the pages are there
	begin, err := processorTime(unix.CLOCK_THREAD_CPUTIME_ID)
	now, bytes := begin, 0
	for err == nil && now-begin < copyTime {
		bytes += copy(to, from)
		now, err = processorTime(unix.CLOCK_THREAD_CPUTIME_ID)
	}
	return float64(bytes) / (now - begin).Seconds(), err
}
