package handshake

import (
	"crypto/ed25519"
	"fmt"

	"github.com/leidenzipper/zipper/wire"
)

// Certificate lets a forwarder show to another one that a rank of the job has joined it: it holds the rank's Join and the key whose public half was
// the nonce that the Join is signed for. The forwarder knows neither the job's secret nor its key.
type Certificate struct {
	key  ed25519.PrivateKey
	join wire.Join
}

// Bridger is the end of a new link between two forwarders that made it. Not safe for concurrent use.
//
//	acceptor (Acceptor)              dialler (Bridger)
//	Challenge{version, nonce}  ──►
//	                           ◄──   Bridge{certificate, signature over the nonce}
//	or Refuse{code, reason}    ──►
type Bridger struct {
	queue
	cert Certificate
	to   uint16
	done bool
}

// NewBridger starts an exchange with the forwarder that has the index to in the job's zippers.
func NewBridger(cert Certificate, to int) *Bridger { return &Bridger{cert: cert, to: uint16(to)} }

// HandleMessage takes the first frame from the other forwarder. body is not kept.
func (b *Bridger) HandleMessage(h wire.Header, body []byte) {
	if b.done {
		return
	}
	b.done = true
	refuse := func(code wire.RefuseCode, reason string) {
		b.push(Event{Kind: Send, Frame: wire.AppendFrame(nil, control(wire.TypeRefuse), &wire.Refuse{Code: code, Reason: reason})})
		b.push(Event{Kind: Ended, Err: &Refused{code, reason, false}})
	}
	switch h.Type {
	case wire.TypeRefuse:
		r, err := wire.ParseRefuse(body)
		if err != nil {
			refuse(wire.RefuseMalformed, err.Error())
			return
		}
		b.push(Event{Kind: Ended, Err: &Refused{r.Code, r.Reason, true}})
	case wire.TypeChallenge:
		c, err := wire.ParseChallenge(body)
		switch {
		case err != nil:
			refuse(wire.RefuseMalformed, err.Error())
		case c.Version != wire.Version:
			refuse(wire.RefuseVersion, versions(wire.Version, c.Version))
		default:
			f := wire.Bridge{Version: wire.Version, From: b.cert.join.Here, To: b.to, Join: b.cert.join}
			copy(f.Nonce[:], b.cert.key.Public().(ed25519.PublicKey))
			copy(f.Signature[:], ed25519.Sign(b.cert.key, signedBridge(&f, c.Nonce)))
			b.push(Event{Kind: Send, Frame: wire.AppendFrame(nil, control(wire.TypeBridge), &f)})
			b.push(Event{Kind: Bridged, Join: b.cert.join})
		}
	default:
		refuse(wire.RefuseMalformed, fmt.Sprintf("%v frame where a Challenge was due (is that a Zipper forwarder?)", h.Type))
	}
}

// handleBridge checks a forwarder's claim to serve a job.
func (a *Acceptor) handleBridge(h wire.Header, body []byte) {
	f, err := wire.ParseBridge(body)
	switch {
	case err != nil:
		a.malformed(h, err)
	case f.Version != wire.Version:
		a.Refuse(wire.RefuseVersion, versions(wire.Version, f.Version))
	case !verify(&f.Join, f.Nonce) || !ed25519.Verify(f.Nonce[:], signedBridge(&f, a.nonce), f.Signature[:]):
		a.Refuse(wire.RefuseSecret, "the other forwarder cannot show that a rank of the job has joined it")
	case !a.wanted(&f.Join):
		a.Refuse(wire.RefuseSecret, otherSecret)
	default:
		a.state = awaitDecision
		a.push(Event{Kind: Bridged, Join: f.Join, To: int(f.To)})
	}
}

// Certificate is good for the Join that this exchange has verified.
func (a *Acceptor) Certificate(j *wire.Join) Certificate { return Certificate{a.key, *j} }

// Release ends the exchange without an answer: the link is one between forwarders.
func (a *Acceptor) Release() { a.state = acceptorDone }

func signedBridge(f *wire.Bridge, nonce [wire.NonceLen]byte) []byte {
	b := append([]byte("zipper bridge\x00"), nonce[:]...)
	return f.AppendUnsigned(b)
}
