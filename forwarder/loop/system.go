package loop

import (
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// System has the system calls of a loop: descriptors that report on others. That of Linux is the
// default; a simulation brings its own.
type System interface {
	// Epoll returns a descriptor whose set Control changes, and on which Wait waits for up to ms
	// milliseconds. Wait returns 0 events after an error.
	Epoll() (fd int, err error)
	Control(epfd, op, fd int, e *unix.EpollEvent) error
	Wait(epfd int, events []unix.EpollEvent, ms int) int

	// Event returns a descriptor that becomes readable by Signal, and stays so until Drain.
	Event() (fd int, err error)
	Signal(fd int)
	Drain(fd int)

	// Close frees a descriptor of Epoll or Event.
	Close(fd int)

	// Sleep suspends the thread for about d.
	Sleep(d time.Duration)
}

type linux struct{}

func (linux) Epoll() (int, error) { return unix.EpollCreate1(unix.EPOLL_CLOEXEC) }

func (linux) Control(epfd, op, fd int, e *unix.EpollEvent) error {
	return unix.EpollCtl(epfd, op, fd, e)
}

// Wait waits for events like epoll_wait. With ms 0 it makes a raw system call, which the Go
// scheduler does not see.
func (linux) Wait(epfd int, events []unix.EpollEvent, ms int) int {
	if ms == 0 {
		n, _, e := unix.RawSyscall6(unix.SYS_EPOLL_PWAIT, uintptr(epfd),
			uintptr(unsafe.Pointer(unsafe.SliceData(events))),
			uintptr(len(events)), 0, 0, 0)
		if e != 0 {
			return 0
		}
		return int(n)
	}
	n, err := unix.EpollWait(epfd, events, ms)
	if err != nil { // EINTR; nothing else with good arguments
		return 0
	}
	return n
}

func (linux) Event() (int, error) { return unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK) }

// Signal makes a descriptor of Event readable. It cannot fail, because the counter behind the
// descriptor is small.
func (linux) Signal(fd int) { _, _ = unix.Write(fd, []byte{1, 0, 0, 0, 0, 0, 0, 0}) }

func (linux) Drain(fd int) {
	var n [8]byte
	_, _ = unix.Read(fd, n[:]) // EAGAIN is fine
}

func (linux) Close(fd int) { unix.Close(fd) }

// Sleep bypasses the Go scheduler: handing the thread's place to others and back would take longer
// than the sleep. A signal ends it, such as those that the scheduler sends to threads that it
// needs.
func (linux) Sleep(d time.Duration) {
	t := unix.NsecToTimespec(int64(d))
	_, _, _ = unix.RawSyscall(unix.SYS_NANOSLEEP, uintptr(unsafe.Pointer(&t)), 0, 0)
}
