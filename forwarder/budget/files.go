package budget

import "syscall"

// fewDescriptors is how many descriptors there are taken to be where the system does not say.
const fewDescriptors = 1024

// Descriptors is how many descriptors this process may have open.
func Descriptors() int {
	var l syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &l); err != nil {
		return fewDescriptors
	}
	return int(max(8, min(l.Cur, 1<<30)))
}
