package wire

import "fmt"

// NonceLen is the size of a challenge's nonce in bytes.
const NonceLen = 32

// ChallengeLen is the size of a Challenge in bytes.
const ChallengeLen = 4 + NonceLen + 4 + SealKeyLen

// Challenge is the first frame on a link, from the forwarder.
//
//	0  u32       version  the forwarder's protocol version
//	4  byte[32]  nonce    fresh random bytes, to be signed by the joiner
//	36 u32       nat      1: the forwarder's kernel can pass connections on to the joiner (Join.Inside); 0: it does not
//	40 byte[32]  link key the forwarder's X25519 key, from which those of the link are made if it is sealed; on direct
//	                      links zero: the ranks have keys of their own
type Challenge struct {
	Version uint32
	Nonce   [NonceLen]byte
	NAT     bool
	LinkKey [SealKeyLen]byte
}

// Append adds the body's bytes to b.
func (c *Challenge) Append(b []byte) []byte {
	nat := uint32(0)
	if c.NAT {
		nat = 1
	}
	b = le.AppendUint32(append(le.AppendUint32(b, c.Version), c.Nonce[:]...), nat)
	return append(b, c.LinkKey[:]...)
}

// ParseChallenge reads a Challenge. Of another version's only Version is read: it ends with that.
func ParseChallenge(b []byte) (Challenge, error) {
	r := reader{b: b}
	c := Challenge{Version: r.u32()}
	if r.err == nil && c.Version != Version {
		return c, nil
	}
	r.bytes(c.Nonce[:])
	nat := r.u32()
	if r.err == nil && nat > 1 {
		r.fail(fmt.Errorf("wire: nat is %d, want 0 or 1", nat))
	}
	c.NAT = nat == 1
	r.bytes(c.LinkKey[:])
	return c, r.end()
}
