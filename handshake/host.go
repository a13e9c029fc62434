package handshake

import (
	"crypto/ed25519"
	"crypto/sha256"
	"fmt"

	"github.com/leidenzipper/zipper/internal/wire"
)

// A forwarder proves with its answer to a Join or a Bridge that it has the host key which its
// Challenge named. The signature covers both frames, so all that either end has said of itself.
// Each has random bytes of its own in them: what was signed before, or for another link, is worth
// nothing. It comes with what is sent anyway, and costs no round trip. Those who wait for the same
// job have one signature for many (joint.go).

// proofOf is what a forwarder signs: body is that of a frame of type t.
func proofOf(challenge []byte, t wire.Type, body []byte) []byte {
	c, b := sha256.Sum256(challenge), sha256.Sum256(body)
	const of = "zipper proof\x00"
	out := append(make([]byte, 0, len(of)+1+len(c)+len(b)), of...)
	return append(append(append(out, byte(t)), c[:]...), b[:]...)
}

// prove signs for the acceptor's Proof; nil without a host key.
func (a *Acceptor) prove(t wire.Type, body []byte) *wire.Proof {
	if a.terms.HostKey == nil {
		return nil
	}
	return a.sign(proofOf(a.challenge, t, body))
}

func (a *Acceptor) sign(what []byte) *wire.Proof {
	p := &wire.Proof{}
	copy(p.Signature[:], ed25519.Sign(a.terms.HostKey, what))
	return p
}

// witness is the end of a link that is shown a host key. The zero value is ready for use.
type witness struct {
	key       [wire.PublicKeyLen]byte // that the Challenge names; zero: none
	challenge []byte
	said      wire.Type // our answer to it
	answer    []byte
}

// challenged notes what the Challenge says, and refuses a key that is not the expected one (zero:
// any will do).
func (w *witness) challenged(c *wire.Challenge, body []byte, expected [wire.PublicKeyLen]byte) *Refused {
	w.key, w.challenge = c.HostKey, append([]byte(nil), body...)
	if expected == w.key || expected == [wire.PublicKeyLen]byte{} {
		return nil
	}
	return otherHost(w.key, expected)
}

func otherHost(has, expected [wire.PublicKeyLen]byte) *Refused {
	it := "has no host key"
	if s := wire.FormatHostKey(has); s != "" {
		it = "has the host key " + s
	}
	return &Refused{wire.RefuseHostKey, fmt.Sprintf("the forwarder %s, and the job wants the one with %s: "+
		"it is another one, or somebody in between; if its key was changed on purpose, give the job the new one",
		it, wire.FormatHostKey(expected)), false}
}

// answered notes what we have answered.
func (w *witness) answered(t wire.Type, body wire.Body) { w.said, w.answer = t, body.Append(nil) }

// waits reports whether a Proof has to come.
func (w *witness) waits() bool { return w.key != [wire.PublicKeyLen]byte{} }

// good reports whether this is it.
func (w *witness) good(p *wire.Proof) bool {
	return ed25519.Verify(w.key[:], w.proof(), p.Signature[:])
}

// goodJoint reports whether this is it.
func (w *witness) goodJoint(p *wire.JointProof) bool {
	return ed25519.Verify(w.key[:], rootOf(p, w.proof()), p.Signature[:])
}

// proof is what the forwarder has to have signed, alone or with others.
func (w *witness) proof() []byte { return proofOf(w.challenge, w.said, w.answer) }

const noProof = "the forwarder does not have the host key that it shows"
