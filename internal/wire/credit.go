package wire

// MaxWindow bounds the payload bytes (Eager and Data together) that one rank may have in flight to
// another. No receiver grants more, and a forwarder ends the link of a rank that has more queued.
const MaxWindow = 64 << 20

// CreditLen is the size of a Credit in bytes.
const CreditLen = 16

// Credit raises the limits of the payload bytes, counted since the flow began, that the rank to
// which the frame goes (dst) may send to the rank that made it (src). The limits bound the Eager
// payload that no receive has consumed, and the Data payload that has not landed. Credit is
// cumulative: the highest value counts.
//
//	0  u64  eager
//	8  u64  data
type Credit struct{ Eager, Data uint64 }

// Append appends the encoded body of the frame to b and returns the extended slice.
func (c *Credit) Append(b []byte) []byte {
	return le.AppendUint64(le.AppendUint64(b, c.Eager), c.Data)
}

// ParseCredit parses a Credit that fills b.
func ParseCredit(b []byte) (Credit, error) {
	if err := exactly(b, CreditLen); err != nil {
		return Credit{}, err
	}
	return Credit{le.Uint64(b), le.Uint64(b[8:])}, nil
}
