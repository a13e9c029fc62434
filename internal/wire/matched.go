package wire

// MatchedLen is the size of a Matched in bytes.
const MatchedLen = 8

// Matched tells the sender of a synchronous eager message that a receive has matched it.
//
//	0  u64  sender    the sender's request, from the envelope
type Matched struct{ Sender uint64 }

// Append appends the encoded body of the frame to b and returns the extended slice.
func (m *Matched) Append(b []byte) []byte { return le.AppendUint64(b, m.Sender) }

// ParseMatched parses a Matched that fills b.
func ParseMatched(b []byte) (Matched, error) {
	s, err := parseHandle(b)
	return Matched{s}, err
}
