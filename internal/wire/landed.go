package wire

// LandedLen is the size of a Landed in bytes.
const LandedLen = 8

// Landed is sent over the rail on which Data frames arrived. It says how much of their payload has
// landed without a gap, counted from the first Data frame of the epoch in its header. (Data frames
// may overtake each other, and have their places.) It is cumulative.
//
//	0  u64  bytes
type Landed struct{ Bytes uint64 }

// Append appends the encoded body of the frame to b and returns the extended slice.
func (l *Landed) Append(b []byte) []byte { return le.AppendUint64(b, l.Bytes) }

// ParseLanded parses a Landed that fills b.
func ParseLanded(b []byte) (Landed, error) {
	n, err := parseHandle(b)
	return Landed{n}, err
}
