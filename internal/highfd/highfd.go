// Package highfd gives the library's descriptors numbers that a program does not get for its own
// files. A program that closes a number twice, or all numbers up to some limit, then closes none
// of the library's, and a file that it opens next does not get the number of one that the library
// still uses.
package highfd

import "golang.org/x/sys/unix"

// Floor returns the lowest number that the library wants: three quarters of what the process may
// open, at most highest.
func Floor() int {
	var limit unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_NOFILE, &limit) != nil {
		return 0
	}
	return int(min(limit.Cur-limit.Cur/4, highest))
}

// Raise moves a descriptor to a number from Floor on and returns that. It is closed on exec. If
// there is no such number left the descriptor stays where it is.
func Raise(fd int) int {
	high, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, Floor())
	if err != nil {
		return fd
	}
	unix.Close(fd)
	return high
}

// Occupy takes all free numbers below Floor until release is called, so that descriptors made
// meanwhile are above, those of Go's runtime too. It does without the numbers that it cannot get.
func Occupy() (release func()) {
	var taken []int
	floor := Floor()
	if null, err := unix.Open("/dev/null", unix.O_RDONLY|unix.O_CLOEXEC, 0); err == nil {
		taken = append(taken, null)
		for len(taken) < floor {
			fd, err := unix.FcntlInt(uintptr(null), unix.F_DUPFD_CLOEXEC, 0)
			if err != nil {
				break
			}
			if taken = append(taken, fd); fd >= floor {
				break
			}
		}
	}
	return func() {
		for _, fd := range taken {
			unix.Close(fd)
		}
	}
}
