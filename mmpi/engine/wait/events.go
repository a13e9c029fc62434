package wait

import (
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// events are the descriptors that end sleeps.
type events struct {
	wake  int // eventfd: of application threads
	kick  int // eventfd: of the progress thread
	timer int // timerfd of the progress thread, for held messages
}

func (v *events) open() (err error) {
	if v.wake, err = unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK); err != nil {
		return err
	}
	if v.kick, err = unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK); err != nil {
		return err
	}
	v.timer, err = unix.TimerfdCreate(unix.CLOCK_MONOTONIC, unix.TFD_CLOEXEC|unix.TFD_NONBLOCK)
	return err
}

func (v *events) close() {
	unix.Close(v.wake)
	unix.Close(v.kick)
	unix.Close(v.timer)
}

var flushAfter = unix.ItimerSpec{Value: unix.NsecToTimespec(int64(FlushAfter))}

// setTimer has the timer fire after FlushAfter. It cannot fail with these arguments.
func (v *events) setTimer() {
	_, _, _ = unix.RawSyscall6(unix.SYS_TIMERFD_SETTIME, uintptr(v.timer), 0,
		uintptr(unsafe.Pointer(&flushAfter)), 0, 0, 0)
}

var one = [8]byte{1}

func signal(fd int) { _, _ = unix.Write(fd, one[:]) } // fails only when the counter is full: then it is readable already

// drain reads an eventfd or a timerfd.
func drain(fd int) {
	var b [8]byte
	_, _ = unix.Read(fd, b[:])
}

// Ppoll sleeps until one of the descriptors is ready, for up to d; an interrupted sleep is a short
// sleep. With keep the thread sleeps behind the Go scheduler's back and keeps its P: else the
// scheduler's monitor takes the P away after 20 µs, and then looks for more of that every 20 µs,
// which costs a core what a busy forwarder would. Sleeps are short, and a signal ends them when the
// world has to stop. Only where this Go runtime serves the engine alone: a Go program has
// goroutines that need the P.
func Ppoll(set []unix.PollFd, d time.Duration, keep bool) {
	t := unix.NsecToTimespec(int64(max(d, 0)))
	if !keep {
		_, _ = unix.Ppoll(set, &t, nil)
		return
	}
	_, _, _ = unix.RawSyscall6(unix.SYS_PPOLL, uintptr(unsafe.Pointer(unsafe.SliceData(set))),
		uintptr(len(set)), uintptr(unsafe.Pointer(&t)), 0, 0, 0)
}

// untilMultiple is how long it takes until the host's monotonic clock shows a multiple of d. So the
// progress threads of all processes of a host wake together, by one interrupt of a core instead of
// one for each process, and what programs lose by it they lose at the same time (Petrini, Kerbyson,
// Pakin: The Case of the Missing Supercomputer Performance, SC 2003).
func untilMultiple(d time.Duration) time.Duration {
	var t unix.Timespec
	if unix.ClockGettime(unix.CLOCK_MONOTONIC, &t) != nil {
		return d
	}
	return d - time.Duration(t.Nano())%d
}
