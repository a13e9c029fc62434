package output

import (
	"regexp"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
)

// srun watches the output of Slurm's launcher. Once a process has failed the launcher kills the
// others, and exits with the highest status, which is theirs; only its first line on an end tells
// which process failed first. srun is safe for concurrent use.
type srun struct{ first atomic.Int32 }

// taskEnded matches the line on an end: strsignal's name of a signal, or the status of an exit.
var taskEnded = regexp.MustCompile(`^srun: error: [^ ]+: tasks? [0-9,-]+: (?:Exited with exit code ([0-9]+)|([^()\n]+?))(?: \(core dumped\))?\n$`)

// watch returns an edit for a Merger's source that changes nothing.
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

// signalled returns 128 + the signal of a name, or 0 if no signal has that name.
func signalled(name string) int {
	for n := syscall.Signal(1); n < 32; n++ {
		if strings.EqualFold(n.String(), name) {
			return 128 + int(n)
		}
	}
	return 0
}

// status returns the status of the process that failed first, if srun's own is that of a signal.
func (s *srun) status(own int) int {
	if first := int(s.first.Load()); first > 0 && own > 128 {
		return first
	}
	return own
}
