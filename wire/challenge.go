package wire

// NonceLen is the size of a challenge's nonce in bytes.
const NonceLen = 32

// ChallengeLen is the size of a Challenge in bytes.
const ChallengeLen = 4 + NonceLen

// Challenge is the first frame on a link, from the forwarder.
//
//	0  u32       version  the forwarder's protocol version
//	4  byte[32]  nonce    fresh random bytes, to be signed by the joiner
type Challenge struct {
	Version uint32
	Nonce   [NonceLen]byte
}

// Append adds the body's bytes to b.
func (c *Challenge) Append(b []byte) []byte {
	return append(le.AppendUint32(b, c.Version), c.Nonce[:]...)
}

// ParseChallenge reads a Challenge. Of another version's only Version is read: it ends with that.
func ParseChallenge(b []byte) (Challenge, error) {
	r := reader{b: b}
	c := Challenge{Version: r.u32()}
	if r.err == nil && c.Version != Version {
		return c, nil
	}
	r.bytes(c.Nonce[:])
	return c, r.end()
}
