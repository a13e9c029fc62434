package output

import "sync/atomic"

// Complaint keeps the first error that a rank of ours prints: if this process has reached no
// forwarder, only the rank knows the error. It is safe for concurrent use.
type Complaint struct{ text atomic.Pointer[string] }

// Listen is an edit for a Merger's source. It changes nothing.
func (c *Complaint) Listen(line []byte) []byte {
	if m := fromRank.FindSubmatch(line); m != nil && c.text.Load() == nil {
		text := string(m[1])
		c.text.CompareAndSwap(nil, &text)
	}
	return line
}

func (c *Complaint) String() string {
	if p := c.text.Load(); p != nil {
		return *p
	}
	return ""
}
