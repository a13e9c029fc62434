package flow

import (
	"errors"
	"sort"
)

// ErrScattered means that an arrival has more pieces than any honest sender makes.
var ErrScattered = errors.New("flow: segments too scattered")

// Cover records which bytes of a message have landed. The zero value has none. Segments that arrive
// in order take no memory.
type Cover struct {
	front int64  // all bytes before it have landed
	ahead []span // ranges that have landed after front: in order, apart from each other and from front
}

type span struct{ from, to int64 }

// Front returns the number of bytes at the front of the message that have landed.
func (c *Cover) Front() int64 { return c.front }

// Fresh returns how many of the bytes from ≤ x < to have not landed.
func (c *Cover) Fresh(from, to int64) int64 {
	n := to - max(from, c.front)
	for i := c.search(from); i < len(c.ahead) && c.ahead[i].from < to; i++ {
		n -= min(to, c.ahead[i].to) - max(from, c.ahead[i].from)
	}
	return max(n, 0)
}

// Add counts the bytes from ≤ x < to as landed and returns how many of them are new.
func (c *Cover) Add(from, to int64) (int64, error) {
	if from == c.front && len(c.ahead) == 0 {
		c.front = to
		return to - from, nil
	}
	fresh := c.Fresh(from, to)
	if fresh == 0 {
		return 0, nil
	}
	if from <= c.front {
		c.front = to
	} else {
		// All spans from i to j touch the new range.
		i := c.search(from)
		j := i
		for ; j < len(c.ahead) && c.ahead[j].from <= to; j++ {
			from, to = min(from, c.ahead[j].from), max(to, c.ahead[j].to)
		}
		if i == j {
			if len(c.ahead) == maxSpans {
				return 0, ErrScattered
			}
			c.ahead = append(c.ahead, span{})
			copy(c.ahead[i+1:], c.ahead[i:])
			c.ahead[i] = span{from, to}
		} else {
			c.ahead[i] = span{from, to}
			c.ahead = append(c.ahead[:i+1], c.ahead[j:]...)
		}
	}
	n := 0
	for n < len(c.ahead) && c.ahead[n].from <= c.front {
		c.front = max(c.front, c.ahead[n].to)
		n++
	}
	c.ahead = append(c.ahead[:0], c.ahead[n:]...)
	return fresh, nil
}

// search returns the index of the first span that ends at or after x.
func (c *Cover) search(x int64) int {
	return sort.Search(len(c.ahead), func(i int) bool { return c.ahead[i].to >= x })
}
