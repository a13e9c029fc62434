package wire

// EchoLen is the size of an Echo in bytes.
const EchoLen = 8

// Echo is returned at once with FlagReply, so that its sender can measure the round-trip time. A
// late or repeated Echo does no harm, because the shortest time counts.
//
//	0  u64  when it was sent, by the sender's clock, in nanoseconds
type Echo struct{ Sent uint64 }

// Append appends the encoded body of the frame to b and returns the extended slice.
func (e *Echo) Append(b []byte) []byte { return le.AppendUint64(b, e.Sent) }

// ParseEcho parses an Echo that fills b.
func ParseEcho(b []byte) (Echo, error) {
	n, err := parseHandle(b)
	return Echo{n}, err
}
