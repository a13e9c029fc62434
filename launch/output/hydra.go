package output

import (
	"regexp"
	"strconv"
	"sync/atomic"
)

// hydra watches the output of MPICH's launcher and its processes. When a signal ends a process the
// launcher exits with the signal's number, as it does if the process exits with that number; only
// its banner tells which of the two happened. For a process that called MPI_Abort it sometimes
// takes the code for a signal, and shows the banner too; then the process itself has printed the
// code. hydra is safe for concurrent use.
type hydra struct {
	signal  atomic.Int32
	aborted atomic.Int32 // the code given to MPI_Abort
}

var (
	terminated = regexp.MustCompile(`^YOUR APPLICATION TERMINATED WITH THE EXIT STRING: .*\(signal ([0-9]{1,2})\)`)
	abort      = regexp.MustCompile(`Abort\(([0-9]{1,9})\) on node [0-9]+ .*: application called MPI_Abort\(`)
)

// watch returns an edit for a Merger's source that changes nothing.
func (h *hydra) watch(then Edit) Edit {
	return func(line []byte) []byte {
		keep(&h.signal, terminated, line)
		keep(&h.aborted, abort, line)
		if then == nil {
			return line
		}
		return then(line)
	}
}

// keep stores the number that re finds in line, if it matches.
func keep(to *atomic.Int32, re *regexp.Regexp, line []byte) {
	if m := re.FindSubmatch(line); m != nil {
		n, _ := strconv.Atoi(string(m[1]))
		to.Store(int32(n))
	}
}

// status translates the launcher's status to 128 + signal. The launcher ors the statuses of several
// processes.
func (h *hydra) status(s int) int {
	n := int(h.signal.Load())
	if n > 0 && s < 128 && s&n == n && n != int(h.aborted.Load())&0x7f {
		return 128 + n
	}
	return s
}
