package wire

// EchoLen is the size of an Echo in bytes.
const EchoLen = 8

// Echo comes back at once with FlagReply, so that its sender learns how long that takes. One that
// comes late, or twice, changes nothing: the shortest time counts.
//
//	0  u64  when it was sent, by the clock of who asks, in nanoseconds
type Echo struct{ Sent uint64 }

// Append adds the body's bytes to b.
func (e *Echo) Append(b []byte) []byte { return le.AppendUint64(b, e.Sent) }

// ParseEcho reads an Echo that fills b.
func ParseEcho(b []byte) (Echo, error) {
	n, err := parseHandle(b)
	return Echo{n}, err
}
