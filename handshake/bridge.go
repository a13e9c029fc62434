package handshake

import (
	"crypto/ed25519"

	"github.com/leidenzipper/zipper/seal"
	"github.com/leidenzipper/zipper/wire"
)

// Certificate lets a forwarder show to another one that a rank of the job has joined it: it holds
// the rank's Join and the key whose public half was the nonce that the Join is signed for. The
// forwarder knows neither the job's secret nor its key.
type Certificate struct {
	key  ed25519.PrivateKey
	join wire.Join
}

// Bridger is the end of a new link between two forwarders that made it. Not safe for concurrent
// use.
//
//	acceptor (Acceptor)              dialler (Bridger)
//	Challenge{version, nonce}  ──►
//	                           ◄──   Bridge{certificate, signature over the nonce}
//	or Refuse{code, reason}    ──►
type Bridger struct {
	exchange
	cert   Certificate
	peer   uint16 // index of the other forwarder
	number uint16 // of the connection
	keys   *seal.Forwarder
}

// NewBridger starts an exchange with the forwarder that has the index to in the job's zippers, for
// the connection of that number between the two. keys are the own ones, for links of sealed jobs.
func NewBridger(cert Certificate, to, number int, keys *seal.Forwarder) *Bridger {
	return &Bridger{exchange: exchange{hint: forwarderHint}, cert: cert, peer: uint16(to), number: uint16(number), keys: keys}
}

// HandleMessage takes the first frame from the other forwarder. body is not kept.
func (b *Bridger) HandleMessage(h wire.Header, body []byte) {
	if b.ends(h, body) {
		return
	}
	if h.Type != wire.TypeChallenge {
		b.unexpected(h)
		return
	}
	c, ok := b.challenged(h, body)
	if !ok {
		return
	}
	f := wire.Bridge{Version: wire.Version, From: b.cert.join.Here, To: b.peer, Number: b.number, OwnKey: b.keys.Public, LinkKey: c.LinkKey,
		Join: b.cert.join}
	copy(f.Nonce[:], b.cert.key.Public().(ed25519.PublicKey))
	copy(f.Signature[:], ed25519.Sign(b.cert.key, signedBridge(&f, c.Nonce)))
	e := Event{Kind: Bridged, Join: b.cert.join}
	if f.Join.Sealed() {
		var err error
		if e.Seal, err = b.keys.Dialled(c.LinkKey, c.Nonce); err != nil {
			b.malformed(h, err)
			return
		}
	}
	b.send(wire.TypeBridge, &f)
	b.push(e)
	b.to(over)
}

// handleBridge checks a forwarder's claim to serve a job.
func (a *Acceptor) handleBridge(h wire.Header, x *Examined) {
	f, err := x.bridge, x.err
	switch {
	case err != nil:
		a.malformed(h, err)
	case f.Version != wire.Version:
		a.otherVersion(f.Version)
	case !x.genuine:
		a.refuse(wire.RefuseSecret, "the other forwarder cannot show that a rank of the job has joined it")
	case !x.wanted:
		a.refuse(wire.RefuseSecret, otherSecret)
	default:
		a.to(awaitDecision)
		a.push(Event{Kind: Bridged, Join: f.Join, To: int(f.To), Number: int(f.Number), Seal: x.seal})
	}
}

// Certificate is good for the Join that this exchange has verified.
func (a *Acceptor) Certificate(j *wire.Join) Certificate { return Certificate{a.key, *j} }

// Release ends the exchange without an answer: the link is one between forwarders.
func (a *Acceptor) Release() {
	if a.state != over {
		a.to(over)
	}
}

func signedBridge(f *wire.Bridge, nonce [wire.NonceLen]byte) []byte {
	b := append([]byte("zipper bridge\x00"), nonce[:]...)
	return f.AppendUnsigned(b)
}
