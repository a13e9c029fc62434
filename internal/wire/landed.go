package wire

// LandedLen is the size of a Landed in bytes.
const LandedLen = 8

// Landed goes back over the rail that Data frames came over. It says how much of their payload has
// landed without a gap, counted from the first Data frame of the epoch that its header names. (Data
// frames may overtake each other, and say their places.) It is cumulative.
//
//	0  u64  bytes
type Landed struct{ Bytes uint64 }

// Append adds the body's bytes to b.
func (l *Landed) Append(b []byte) []byte { return le.AppendUint64(b, l.Bytes) }

// ParseLanded reads a Landed that fills b.
func ParseLanded(b []byte) (Landed, error) {
	n, err := parseHandle(b)
	return Landed{n}, err
}
