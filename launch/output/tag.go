package output

import (
	"bytes"
	"fmt"
	"strconv"
)

// tagged puts the rank in MPI_COMM_WORLD before each line of a native rank's, of which world tells:
// "[5] ". One of the launcher's own words (native rank launcher, or none that there is) gets the
// cluster's name.
func tagged(cluster string, world []int, native int) Edit {
	tag := "[" + cluster + "] "
	if native >= 0 && native < len(world) {
		tag = fmt.Sprintf("[%d] ", world[native])
	}
	return func(line []byte) []byte { return append([]byte(tag), line...) }
}

// retag turns the tags that MPICH's launcher puts before each line ("[3] ") into those of tagged.
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
