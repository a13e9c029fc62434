package wire

import (
	"encoding/base64"
	"fmt"
)

// NonceLen is the size of a challenge's nonce in bytes.
const NonceLen = 32

// ChallengeLen is the size of a Challenge in bytes.
const ChallengeLen = 4 + 4 + NonceLen + 4 + SealKeyLen + PublicKeyLen

// Challenge is the first frame on a link, from the forwarder. In all versions it begins like this.
// Newer versions may append fields, which older ones ignore.
//
//	0  u32       version  newest version of the protocol that the forwarder speaks
//	4  u32       oldest   version of the protocol that it speaks
//	8  byte[32]  nonce    fresh random bytes, to be signed by the joiner
//	40 u32       nat      1: the forwarder's kernel can pass connections on to the joiner (Join.Inside); 0: it does not
//	44 byte[32]  link key the forwarder's X25519 key, from which those of the link are made if it is sealed; on direct
//	                      links zero: the ranks have keys of their own
//	76 byte[32]  host key the forwarder's (Ed25519), of which a Proof follows; zero: it has none, nor do ranks
type Challenge struct {
	Version uint32
	Oldest  uint32
	Nonce   [NonceLen]byte
	NAT     bool
	LinkKey [SealKeyLen]byte
	HostKey [PublicKeyLen]byte
}

// Append appends the encoded body of the frame to b and returns the extended slice.
func (c *Challenge) Append(b []byte) []byte {
	nat := uint32(0)
	if c.NAT {
		nat = 1
	}
	b = le.AppendUint32(le.AppendUint32(b, c.Version), c.Oldest)
	b = le.AppendUint32(append(b, c.Nonce[:]...), nat)
	return append(append(b, c.LinkKey[:]...), c.HostKey[:]...)
}

// ParseChallenge parses a Challenge. If there is no version that both ends support (Common) only
// Version and Oldest are set.
func ParseChallenge(b []byte) (Challenge, error) {
	r := reader{b: b}
	c := Challenge{Version: r.u32()}
	if len(r.b) >= 4 { // before version 10 there was one version only, and no Oldest
		c.Oldest = r.u32()
	}
	if _, ok := c.Common(); r.err == nil && !ok {
		return c, nil
	}
	r.bytes(c.Nonce[:])
	nat := r.u32()
	if r.err == nil && nat > 1 {
		r.fail(fmt.Errorf("wire: nat is %d, want 0 or 1", nat))
	}
	c.NAT = nat == 1
	r.bytes(c.LinkKey[:])
	r.bytes(c.HostKey[:])
	if c.Version > Version {
		return c, r.err
	}
	return c, r.end()
}

// ProofLen is the size of a Proof in bytes.
const ProofLen = SignatureLen

// Proof is a forwarder's answer to a Join or a Bridge. It proves that the forwarder has the host
// key that its Challenge named. It comes before all later frames of the handshake except Ping and
// Refuse.
//
//	0  byte[64]  signature  by the host key over the Challenge and the Join or Bridge (package handshake)
type Proof struct{ Signature [SignatureLen]byte }

// Append appends the encoded body of the frame to b and returns the extended slice.
func (p *Proof) Append(b []byte) []byte { return append(b, p.Signature[:]...) }

// ParseProof parses a Proof that fills b. The signature is not checked here.
func ParseProof(b []byte) (Proof, error) {
	r := reader{b: b}
	var p Proof
	r.bytes(p.Signature[:])
	return p, r.end()
}

// NodeLen is the size of a hash in a JointProof in bytes. MaxDepth is the largest number of hashes.
const (
	NodeLen  = 32
	MaxDepth = 5
)

// JointProof is a Proof with one signature for up to 2^MaxDepth ranks. The ranks are the leaves of
// a tree of hashes whose root is signed.
//
//	0  byte[64]  signature  by the host key over the root (package handshake)
//	64 u32       place      of the receiver's leaf, from the left
//	68 byte[32]  nodes      for each level from the leaf on the one beside; at most MaxDepth
type JointProof struct {
	Signature [SignatureLen]byte
	Place     uint32
	Nodes     [][NodeLen]byte
}

// Append appends the encoded body of the frame to b and returns the extended slice.
func (p *JointProof) Append(b []byte) []byte {
	b = le.AppendUint32(append(b, p.Signature[:]...), p.Place)
	for _, n := range p.Nodes {
		b = append(b, n[:]...)
	}
	return b
}

// ParseJointProof parses a JointProof that fills b. The signature is not checked here.
func ParseJointProof(b []byte) (JointProof, error) {
	r := reader{b: b}
	var p JointProof
	r.bytes(p.Signature[:])
	p.Place = r.u32()
	for r.err == nil && len(r.b) >= NodeLen && len(p.Nodes) < MaxDepth {
		var n [NodeLen]byte
		r.bytes(n[:])
		p.Nodes = append(p.Nodes, n)
	}
	if r.err == nil && p.Place>>len(p.Nodes) != 0 {
		r.fail(fmt.Errorf("wire: place %d in a tree of depth %d", p.Place, len(p.Nodes)))
	}
	if err := r.end(); err != nil {
		return JointProof{}, err
	}
	return p, nil
}

// hostKeys is the text form of a host key: 43 characters, none of which has a meaning in an
// address, in a list of addresses, or in a shell.
var hostKeys = base64.RawURLEncoding.Strict()

// FormatHostKey returns the text form of a host key, or "" for none.
func FormatHostKey(key [PublicKeyLen]byte) string {
	if key == [PublicKeyLen]byte{} {
		return ""
	}
	return hostKeys.EncodeToString(key[:])
}

// ParseHostKey parses the text form of a host key.
func ParseHostKey(s string) (key [PublicKeyLen]byte, err error) {
	b, err := hostKeys.DecodeString(s)
	if err != nil || len(b) != PublicKeyLen || [PublicKeyLen]byte(b) == [PublicKeyLen]byte{} {
		return key, fmt.Errorf("host key %q: want the %d characters that zipper forwarder logs at its start", s,
			hostKeys.EncodedLen(PublicKeyLen))
	}
	return [PublicKeyLen]byte(b), nil
}
