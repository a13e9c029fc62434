package output

import (
	"bytes"
	"fmt"
	"strconv"
)

// tagged returns an edit that puts a native rank's rank in MPI_COMM_WORLD, world[native], before
// each line: "[5] ". A line of the launcher's own (native is launcher, or out of range) gets the
// cluster's name.
func tagged(cluster string, world []int, native int) Edit {
	tag := "[" + cluster + "] "
	if native >= 0 && native < len(world) {
		tag = fmt.Sprintf("[%d] ", world[native])
	}
	return func(line []byte) []byte { return append([]byte(tag), line...) }
}

// retag returns an edit that replaces the tags that MPICH's launcher puts before each line ("[3] ")
// by those of tagged.
func retag(cluster string, world []int) Edit {
	return func(line []byte) []byte {
		if head, text, ok := bytes.Cut(line, []byte("] ")); ok && bytes.HasPrefix(head, []byte("[")) {
			if n, err := strconv.Atoi(string(head[1:])); err == nil && n >= 0 && n < len(world) {
				return tagged(cluster, world, n)(text)
			}
		}
		return tagged(cluster, world, launcher)(line)
	}
}
