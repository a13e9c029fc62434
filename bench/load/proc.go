package load

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"syscall"
)

// resident returns a process's resident set in KiB, or 0 if it is unknown.
func resident(pid int) float64 {
	f := statFields(pid, "statm")
	if len(f) < 2 {
		return 0
	}
	pages, _ := strconv.ParseFloat(string(f[1]), 64)
	return pages * float64(os.Getpagesize()) / 1024
}

// ticksPerSecond is USER_HZ, 100 on every architecture that Go supports on Linux.
const ticksPerSecond = 100

// processor returns the processor time of a process in s, or 0 if it is unknown.
func processor(pid int) float64 {
	f := statFields(pid, "stat")
	if len(f) < 13 { // counted from the state, after the name in parentheses
		return 0
	}
	user, _ := strconv.ParseFloat(string(f[11]), 64)
	system, _ := strconv.ParseFloat(string(f[12]), 64)
	return (user + system) / ticksPerSecond
}

func statFields(pid int, file string) [][]byte {
	if pid == 0 {
		return nil
	}
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/%s", pid, file))
	if err != nil {
		return nil
	}
	return bytes.Fields(b[bytes.LastIndexByte(b, ')')+1:])
}

// descriptors returns the number of descriptors that this process may have open.
func descriptors() int {
	var l syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &l); err != nil {
		return fewOthers // unknown: no more links than that
	}
	return int(min(l.Cur, 1<<30))
}
