package launch

import (
	"bytes"
	"fmt"
	"strconv"
)

// retag turns the tags that the native launchers put before each line ("[1,3]<stdout>:" of Open MPI, "[3] " of
// MPICH) into the rank in MPI_COMM_WORLD, world of each native rank: "[5] ". A line without one (the launcher's own words) gets the cluster's name.
func retag(m MPI, cluster string, world []int) func([]byte) []byte {
	return func(line []byte) []byte {
		var rank, text []byte
		switch m {
		case OpenMPI: // [jobid,rank]<stream>:text
			if head, rest, ok := bytes.Cut(line, []byte(">:")); ok && bytes.HasPrefix(head, []byte("[1,")) {
				if r, _, ok := bytes.Cut(head[3:], []byte("]<")); ok {
					rank, text = r, rest
				}
			}
		case MPICH: // [rank] text
			if head, rest, ok := bytes.Cut(line, []byte("] ")); ok && bytes.HasPrefix(head, []byte("[")) {
				rank, text = head[1:], rest
			}
		}
		if n, err := strconv.Atoi(string(rank)); err == nil && n >= 0 && n < len(world) {
			return append(fmt.Appendf(nil, "[%d] ", world[n]), text...)
		}
		return append(fmt.Appendf(nil, "[%s] ", cluster), line...)
	}
}
