package launch

import (
	"fmt"
	"regexp"
	"strconv"
	"sync/atomic"
	"syscall"

	"golang.org/x/sys/unix"
)

// SignalName is the name that people type: SIGTERM.
func SignalName(s syscall.Signal) string {
	if n := unix.SignalName(s); n != "" {
		return n
	}
	return "signal " + strconv.Itoa(int(s))
}

// DescribeStatus says what an exit status means: "exit status 139 (SIGSEGV)".
func DescribeStatus(status int) string {
	if status > 128 {
		if n := unix.SignalName(syscall.Signal(status - 128)); n != "" {
			return fmt.Sprintf("exit status %d (%s)", status, n)
		}
	}
	return fmt.Sprintf("exit status %d", status)
}

// hydra watches what MPICH's launcher prints: when a signal ended a process it exits with the signal's number, as it would if the process had exited with
// that, and only its banner tells which. Safe for concurrent use.
type hydra struct{ signal atomic.Int32 }

var terminated = regexp.MustCompile(`^YOUR APPLICATION TERMINATED WITH THE EXIT STRING: .*\(signal ([0-9]{1,2})\)`)

// watch gives an edit for a Merger's source that changes nothing.
func (h *hydra) watch(then func([]byte) []byte) func([]byte) []byte {
	return func(line []byte) []byte {
		if m := terminated.FindSubmatch(line); m != nil {
			n, _ := strconv.Atoi(string(m[1]))
			h.signal.Store(int32(n))
		}
		if then == nil {
			return line
		}
		return then(line)
	}
}

// status translates the launcher's to 128 + signal. It ors the statuses of several processes.
func (h *hydra) status(s int) int {
	if n := int(h.signal.Load()); n > 0 && s < 128 && s&n == n {
		return 128 + n
	}
	return s
}

// withoutNUL gives an edit for a Merger's source that drops what PRRTE (Open MPI 5) prints behind the last newline of its own messages, a NUL byte: the next
// line on the terminal, which may be ours, would begin with it.
func withoutNUL(then func([]byte) []byte) func([]byte) []byte {
	return func(line []byte) []byte {
		if len(line) == 1 && line[0] == 0 {
			return nil
		}
		return then(line)
	}
}
