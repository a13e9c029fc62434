package output

import (
	"regexp"
	"strconv"
	"sync/atomic"
)

// hydra watches what MPICH's launcher prints: when a signal ended a process it exits with the
// signal's number, as it would if the process had exited with that, and only its banner tells
// which. Safe for concurrent use.
type hydra struct{ signal atomic.Int32 }

var terminated = regexp.MustCompile(`^YOUR APPLICATION TERMINATED WITH THE EXIT STRING: .*\(signal ([0-9]{1,2})\)`)

// watch gives an edit for a Merger's source that changes nothing.
func (h *hydra) watch(then Edit) Edit {
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
