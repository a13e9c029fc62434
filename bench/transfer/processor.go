package transfer

import (
	"runtime"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// processorTime is what a process or thread has used so far.
func processorTime(who int) (time.Duration, error) {
	var use syscall.Rusage
	err := syscall.Getrusage(who, &use)
	return time.Duration(use.Utime.Nano() + use.Stime.Nano()), err
}

// copyRate is how fast one thread copies what is too large for caches, bytes/s of processor time:
// others may run, too.
func copyRate() (float64, error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	from, to := make([]byte, copyBytes), make([]byte, copyBytes)
	clear(to[:copy(to, from)]) // the pages are there
	begin, err := processorTime(unix.RUSAGE_THREAD)
	now, bytes := begin, 0
	for err == nil && now-begin < copyTime {
		bytes += copy(to, from)
		now, err = processorTime(unix.RUSAGE_THREAD)
	}
	return float64(bytes) / (now - begin).Seconds(), err
}
