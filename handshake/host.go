package handshake

import (
	"crypto/ed25519"
	"crypto/sha256"

	"github.com/leidenzipper/zipper/internal/wire"
)

// A forwarder proves with its answer to a Join or a Bridge that it has the host key which its
// Challenge named. The signature covers both frames, so all that either end has said about itself.
// Each has random bytes of its own in them, so a signature made before, or for another link, proves
// nothing. It is sent with another frame, and costs no round trip. Ranks that wait for the same job
// share a signature (joint.go).

// proofOf returns the text that a forwarder signs; body is that of a frame of type t.
func proofOf(challenge []byte, t wire.Type, body []byte) []byte {
	c, b := sha256.Sum256(challenge), sha256.Sum256(body)
	const of = "zipper proof\x00"
	out := append(make([]byte, 0, len(of)+1+len(c)+len(b)), of...)
	return append(append(append(out, byte(t)), c[:]...), b[:]...)
}

// prove returns the acceptor's Proof, or nil without a host key.
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

// witness is the end of a link to which a host key is shown. The zero value is ready for use.
type witness struct {
	// key is the key that the Challenge names; zero if it names none.
	key       [wire.PublicKeyLen]byte
	challenge []byte
	// answerType is the type of our answer to the Challenge, and answer is its body.
	answerType wire.Type
	answer     []byte
}

// challenged records the Challenge, and refuses a key other than the expected one; zero expects any
// key.
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
	return Refusal(wire.RefuseHostKey, "the forwarder %s, and the job wants the one with %s: "+
		"it is another forwarder, or an attacker in between; if its key was changed on purpose, give the job the new one",
		it, wire.FormatHostKey(expected))
}

// answered records our answer.
func (w *witness) answered(t wire.Type, body wire.Body) { w.answerType, w.answer = t, body.Append(nil) }

// waits tells whether a Proof has to come.
func (w *witness) waits() bool { return w.key != [wire.PublicKeyLen]byte{} }

// good tells whether p proves the key.
func (w *witness) good(p *wire.Proof) bool {
	return ed25519.Verify(w.key[:], w.proof(), p.Signature[:])
}

// goodJoint tells whether p proves the key.
func (w *witness) goodJoint(p *wire.JointProof) bool {
	return ed25519.Verify(w.key[:], rootOf(p, w.proof()), p.Signature[:])
}

// proof returns the text that the forwarder must have signed, alone or with others.
func (w *witness) proof() []byte { return proofOf(w.challenge, w.answerType, w.answer) }

const noProof = "the forwarder does not have the host key that it shows"
