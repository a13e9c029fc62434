package output

import (
	"bytes"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
)

// dedup lets what many ranks of a cluster say at once, the end of the job above all, be said once:
// the first line passes, how many more there were comes at the end. Safe for concurrent use.
type dedup struct {
	mu    sync.Mutex
	more  map[string]int // by text, whose first line has passed
	order []string
}

var fromRank = regexp.MustCompile(`MMPI: (?:virtual rank [0-9]+|native rank [0-9]+ on [^ ]+): (.*)\n$`)

// once gives an edit for a Merger's source that drops what another rank has said.
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
	if _, said := c.more[text]; said {
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

// fatal reports whether a rank has said why it does not go on: all do that but those that leave.
func (c *dedup) fatal() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.ContainsFunc(c.order, func(text string) bool { return !strings.HasPrefix(text, "leaving the job: ") })
}

// rest says how many more there were.
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
