package wire

import "fmt"

// Count says how much was sent over a link before it. So it is noticed when frames were left out on
// the way, or sent twice by somebody there, even if nothing follows them. Each end of a link sends
// one when a running job begins to use it, and then now and then.
//
//	0  u64  number  of these over this link, from 1
//	8  u64  bytes   sent over this link before it, from anywhere before the first one on
type Count struct{ Number, Bytes uint64 }

// CountLen is the length of the body in bytes.
const CountLen = 16

// Append adds the body's bytes to b.
func (c *Count) Append(b []byte) []byte {
	return le.AppendUint64(le.AppendUint64(b, c.Number), c.Bytes)
}

// ParseCount reads a Count that fills b.
func ParseCount(b []byte) (Count, error) {
	r := reader{b: b}
	c := Count{r.u64(), r.u64()}
	return c, r.end()
}

// Counted compares the Counts that come over a link with what comes.
type Counted struct {
	last   uint64 // number
	before uint64 // bytes that had come more than the first Count said
}

// Take checks a Count that began when at bytes had come. An error means that it is not all that was
// sent, or more.
func (c *Counted) Take(x Count, at uint64) error {
	c.last++
	if c.last == 1 {
		c.before = at - x.Bytes
	}
	switch extra := int64(at - c.before - x.Bytes); {
	case extra < 0:
		return fmt.Errorf("%d bytes that were sent have not come", -extra)
	case extra > 0:
		return fmt.Errorf("%d bytes have come that were not sent", extra)
	case x.Number != c.last:
		return fmt.Errorf("count %d has come in place of %d", x.Number, c.last)
	}
	return nil
}
