// Package highfd gives the library's descriptors numbers that a program does not get for its own
// files. A program may close a number twice, or all numbers up to a limit. Then it closes no
// descriptor of the library. A file that it opens next does not get the number of a descriptor that
// the library still uses. Neither does the library's own next descriptor: numbers rise, so one that
// the program has closed is noticed before it means another descriptor.
package highfd

import (
	"cmp"
	"sync/atomic"
	"syscall"

	"golang.org/x/sys/unix"
)

// Floor returns the lowest number for the library's descriptors: three quarters of the process's
// limit, and at most highest.
func Floor() int {
	var limit unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_NOFILE, &limit) != nil {
		return 0
	}
	return int(min(limit.Cur-limit.Cur/4, highest))
}

// Dup returns a duplicate of a descriptor with a number from Floor on, or any number if no such
// number is left. It is closed on exec. An error is that of fcntl: EMFILE, or EBADF.
func Dup(fd int) (int, error) {
	if high, err := above(fd); err == nil {
		return high, nil
	}
	return unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 0)
}

// DupOf returns a Dup of a connection's or listener's socket, which stays open too.
func DupOf(c syscall.Conn) (int, error) {
	raw, err := c.SyscallConn()
	if err != nil {
		return -1, err
	}
	fd := -1
	var failed error
	err = raw.Control(func(s uintptr) { fd, failed = Dup(int(s)) })
	return fd, cmp.Or(err, failed)
}

// Raise moves a descriptor to a number from Floor on, where it is closed on exec, and returns that
// number. If no such number is left the descriptor is unchanged.
func Raise(fd int) int {
	high, err := above(fd)
	if err != nil {
		return fd
	}
	unix.Close(fd)
	return high
}

// last is the number that above returned last. It belongs to the process, as the table of
// descriptors does.
var last atomic.Int64

// above returns a duplicate of a descriptor with the next free number above the last one, or above
// Floor where rising numbers would exceed the span or the process's limit.
func above(fd int) (int, error) {
	floor := Floor()
	high, err := -1, error(unix.EMFILE)
	if next := int(last.Load()) + 1; next > floor && next < floor+span {
		high, err = unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, next)
	}
	if err != unix.EMFILE && err != unix.EINVAL {
		rise(high)
		return high, err
	}
	high, err = unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, floor)
	last.Store(int64(max(high, 0)))
	return high, err
}

// rise sets last to a number, unless another thread has been given a higher one meanwhile.
func rise(to int) {
	for is := last.Load(); is < int64(to) && !last.CompareAndSwap(is, int64(to)); is = last.Load() {
	}
}
