package output

import (
	"regexp"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
)

// srun watches what Slurm's launcher prints: once a process has failed it kills the others, and
// exits with the highest status, that of those; only its first line on an end tells which came
// first. Safe for concurrent use.
type srun struct{ first atomic.Int32 }

// What strsignal says of a signal, or how the process exited.
var taskEnded = regexp.MustCompile(`^srun: error: [^ ]+: tasks? [0-9,-]+: (?:Exited with exit code ([0-9]+)|([^()\n]+?))(?: \(core dumped\))?\n$`)

// watch gives an edit for a Merger's source that changes nothing.
func (s *srun) watch(then Edit) Edit {
	return func(line []byte) []byte {
		if m := taskEnded.FindSubmatch(line); m != nil {
			status, err := strconv.Atoi(string(m[1]))
			if err != nil {
				status = signalled(string(m[2]))
			}
			s.first.CompareAndSwap(0, int32(status))
		}
		if then == nil {
			return line
		}
		return then(line)
	}
}

// signalled is 128 + the signal of a name; 0: none is called so.
func signalled(name string) int {
	for n := syscall.Signal(1); n < 32; n++ {
		if strings.EqualFold(n.String(), name) {
			return 128 + int(n)
		}
	}
	return 0
}

// status is that of the process that failed first, where srun has that of a signal.
func (s *srun) status(own int) int {
	if first := int(s.first.Load()); first > 0 && own > 128 {
		return first
	}
	return own
}
