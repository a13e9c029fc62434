package output

import (
	"bytes"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
)

// dedup prints a line once that many ranks of a cluster print, such as the end of the job: the
// first one passes, and the number of others comes at the end. It is safe for concurrent use.
type dedup struct {
	mu sync.Mutex
	// more has, for each text whose first line has passed, the number of other lines.
	more  map[string]int
	order []string
}

var fromRank = regexp.MustCompile(`MMPI: (?:virtual rank [0-9]+|native rank [0-9]+ on [^ ]+): (.*)\n$`)

// once returns an edit for a Merger's source that drops texts that another rank has printed.
func (c *dedup) once(then Edit) Edit {
	return func(line []byte) []byte {
		if m := fromRank.FindSubmatch(line); m != nil && c.again(string(m[1])) {
			return nil
		}
		if then == nil {
			return line
		}
		return then(line)
	}
}

func (c *dedup) again(text string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, passed := c.more[text]; passed {
		c.more[text]++
		return true
	}
	if c.more == nil {
		c.more = map[string]int{}
	}
	c.more[text] = 0
	c.order = append(c.order, text)
	return false
}

// fatal tells whether a rank has printed why it ends: all ranks do but those that leave the job.
func (c *dedup) fatal() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.ContainsFunc(c.order, func(text string) bool { return !strings.HasPrefix(text, "leaving the job: ") })
}

// rest returns the lines with the numbers of other ranks.
func (c *dedup) rest(cluster string) []byte {
	c.mu.Lock()
	defer c.mu.Unlock()
	var b bytes.Buffer
	for _, text := range c.order {
		switch n := c.more[text]; n {
		case 0:
		case 1:
			fmt.Fprintf(&b, "MMPI: and 1 more rank of cluster %s: %s\n", cluster, text)
		default:
			fmt.Fprintf(&b, "MMPI: and %d more ranks of cluster %s: %s\n", n, cluster, text)
		}
	}
	return b.Bytes()
}
