package budget

import "syscall"

// fewDescriptors is the assumed limit of descriptors if the system does not tell it.
const fewDescriptors = 1024

// Descriptors returns the number of file descriptors that this process may have open at a time.
func Descriptors() int {
	var l syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &l); err != nil {
		return fewDescriptors
	}
	return int(max(8, min(l.Cur, 1<<30)))
}
