package wait

import (
	"context"
	"runtime"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/leidenzipper/zipper/internal/highfd"
)

// System is the operating system of an engine: time, threads of its own, and descriptors to sleep
// on. Linux is one, a simulation another.
type System interface {
	// Now returns the time since some moment before the engine's start.
	Now() time.Duration
	// UntilMultiple returns the time until the host's clock is a multiple of d.
	UntilMultiple(d time.Duration) time.Duration
	// Go runs fn beside the program. With thread it runs on a thread of its own, without precise
	// timers. join waits for its end.
	Go(fn func(), thread bool) (join func())
	// Pause sleeps for d. It returns false if ctx has ended.
	Pause(ctx context.Context, d time.Duration) bool
	// Hold sleeps for up to d, or until one of the descriptors is ready, while the caller holds the
	// engine's lock.
	Hold(set []unix.PollFd, d time.Duration)

	// Event makes a descriptor that is readable from Signal until Drain.
	Event() (fd int, err error)
	// Timer makes a descriptor that is readable FlushAfter after SetTimer, until Drain.
	Timer() (fd int, err error)
	Signal(fd int)
	Drain(fd int)
	SetTimer(fd int)
	// Epoll makes a descriptor for a set of others, which Control changes as epoll_ctl does.
	Epoll() (fd int, err error)
	Control(epfd, op, fd int, e *unix.EpollEvent) error
	// Ready fills in events of the set that hold, without a wait, and returns their number. It
	// returns -1 if epfd is no descriptor of a set (any more).
	Ready(epfd int, events []unix.EpollEvent) int
	// Close closes one of these descriptors.
	Close(fd int)
	// Poll sleeps until one of the descriptors is ready, for up to d. keep is that of Ppoll.
	Poll(set []unix.PollFd, d time.Duration, keep bool)
}

// Linux is the system that the process runs on. Its time begins with NewLinux.
type Linux struct{ start time.Time }

// NewLinux returns a Linux whose time begins now.
func NewLinux() Linux { return Linux{time.Now()} }

// Now implements System, as do the methods below.
func (l Linux) Now() time.Duration { return time.Since(l.start) }

// UntilMultiple uses the host's monotonic clock. So the progress threads of all processes of a host
// wake together, by one interrupt of a core instead of one for each process. The delays of programs
// by these interrupts coincide (Petrini, Kerbyson, Pakin: The Case of the Missing Supercomputer
// Performance, SC 2003).
func (Linux) UntilMultiple(d time.Duration) time.Duration {
	var t unix.Timespec
	if unix.ClockGettime(unix.CLOCK_MONOTONIC, &t) != nil {
		return d
	}
	return d - time.Duration(t.Nano())%d
}

// Go starts a goroutine.
func (Linux) Go(fn func(), thread bool) (join func()) {
	over := make(chan struct{})
	go func() {
		defer close(over)
		if thread {
			runtime.LockOSThread()
			// A program's threads may have inherited a longer slack. Old kernels and other systems
			// lack the call.
			_ = unix.Prctl(unix.PR_SET_TIMERSLACK, uintptr(slack), 0, 0, 0)
		}
		fn()
	}()
	return func() { <-over }
}

// Pause sleeps for d.
func (Linux) Pause(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}

// Hold sleeps, as Poll does.
func (Linux) Hold(set []unix.PollFd, d time.Duration) { Ppoll(set, d, false) }

// raised moves a new descriptor to a number that the program does not use.
func raised(fd int, err error) (int, error) {
	if err != nil {
		return -1, err
	}
	return highfd.Raise(fd), nil
}

// Event makes an eventfd.
func (Linux) Event() (fd int, err error) {
	return raised(unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK))
}

// Timer makes a timerfd.
func (Linux) Timer() (fd int, err error) {
	return raised(unix.TimerfdCreate(unix.CLOCK_MONOTONIC, unix.TFD_CLOEXEC|unix.TFD_NONBLOCK))
}

var flushAfter = unix.ItimerSpec{Value: unix.NsecToTimespec(int64(FlushAfter))}

// SetTimer starts the timer. It cannot fail with these arguments.
func (Linux) SetTimer(fd int) {
	_, _, _ = unix.RawSyscall6(unix.SYS_TIMERFD_SETTIME, uintptr(fd), 0,
		uintptr(unsafe.Pointer(&flushAfter)), 0, 0, 0)
}

var one = [8]byte{1}

// Signal adds to the event's counter. It fails only if the counter is full: then it is readable
// already.
func (Linux) Signal(fd int) { _, _ = unix.Write(fd, one[:]) }

// Drain reads an eventfd or a timerfd.
func (Linux) Drain(fd int) {
	var b [8]byte
	_, _ = unix.Read(fd, b[:])
}

// Epoll makes an epoll descriptor.
func (Linux) Epoll() (fd int, err error) { return raised(unix.EpollCreate1(unix.EPOLL_CLOEXEC)) }

// Control calls epoll_ctl.
func (Linux) Control(epfd, op, fd int, e *unix.EpollEvent) error {
	return unix.EpollCtl(epfd, op, fd, e)
}

// Ready calls epoll_pwait, which Go's scheduler does not see because it does not block.
func (Linux) Ready(epfd int, events []unix.EpollEvent) int {
	n, _, e := unix.RawSyscall6(unix.SYS_EPOLL_PWAIT, uintptr(epfd),
		uintptr(unsafe.Pointer(unsafe.SliceData(events))), uintptr(len(events)), 0, 0, 0)
	if e != 0 && e != unix.EINTR {
		return -1
	}
	return max(int(n), 0)
}

// Close closes a descriptor.
func (Linux) Close(fd int) { unix.Close(fd) }

// Poll calls Ppoll.
func (Linux) Poll(set []unix.PollFd, d time.Duration, keep bool) { Ppoll(set, d, keep) }

// Ppoll sleeps until one of the descriptors is ready, for up to d. An interrupted sleep ends early.
//
// With keep the thread keeps its P, because Go's scheduler does not notice the sleep. Otherwise the
// scheduler's monitor takes the P away after 20 µs, and then looks for more such threads every 20
// µs, which costs as much of a core as a busy forwarder. Sleeps are short, and a signal ends them
// when the runtime has to stop the world. keep is for processes whose Go runtime serves the engine
// alone: a Go program has goroutines that need the P.
func Ppoll(set []unix.PollFd, d time.Duration, keep bool) {
	t := unix.NsecToTimespec(int64(max(d, 0)))
	if !keep {
		_, _ = unix.Ppoll(set, &t, nil)
		return
	}
	_, _, _ = unix.RawSyscall6(unix.SYS_PPOLL, uintptr(unsafe.Pointer(unsafe.SliceData(set))),
		uintptr(len(set)), uintptr(unsafe.Pointer(&t)), 0, 0, 0)
}
