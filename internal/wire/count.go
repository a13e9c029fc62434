package wire

import "fmt"

// Count has the number of bytes that were sent over a link before it. With it the other end detects
// frames that an attacker or a fault on the network has dropped or repeated, even if no frame
// follows them. Each end of a link sends a Count when a running job begins to use the link, and
// then now and then.
//
//	0  u64  number  of these over this link, from 1
//	8  u64  bytes   sent over this link before it, counted from any point before the first Count
type Count struct{ Number, Bytes uint64 }

// CountLen is the length of the body in bytes.
const CountLen = 16

// Append appends the encoded body of the frame to b and returns the extended slice.
func (c *Count) Append(b []byte) []byte {
	return le.AppendUint64(le.AppendUint64(b, c.Number), c.Bytes)
}

// ParseCount parses a Count that fills b.
func ParseCount(b []byte) (Count, error) {
	r := reader{b: b}
	c := Count{r.u64(), r.u64()}
	return c, r.end()
}

// Counted compares the Counts of a link with the bytes that have arrived.
type Counted struct {
	last   uint64 // number of the last Count
	before uint64 // difference between the bytes that had arrived and those in the first Count
}

// Take checks a Count that began when at bytes had arrived. An error means that fewer or more bytes
// have arrived than were sent.
func (c *Counted) Take(x Count, at uint64) error {
	c.last++
	if c.last == 1 {
		c.before = at - x.Bytes
	}
	switch extra := int64(at - c.before - x.Bytes); {
	case extra < 0:
		return fmt.Errorf("%d bytes that were sent have not arrived", -extra)
	case extra > 0:
		return fmt.Errorf("%d bytes arrived that were not sent", extra)
	case x.Number != c.last:
		return fmt.Errorf("count %d arrived instead of count %d", x.Number, c.last)
	}
	return nil
}
