package handshake

import (
	"crypto/ed25519"
	"fmt"

	"github.com/leidenzipper/zipper/internal/seal"
	"github.com/leidenzipper/zipper/internal/wire"
)

// Certificate lets a forwarder prove to another one that a rank of the job has joined it: it is the
// rank's Join, which names the forwarder's X25519 key, and the nonce for which the Join is signed.
// The forwarder knows neither the job's secret nor its key.
type Certificate struct {
	nonce [wire.NonceLen]byte
	join  wire.Join
}

// Bridger is the dialling end of a new link between two forwarders. It is not safe for concurrent
// use.
//
//	acceptor (Acceptor)              dialler (Bridger)
//	Challenge{version, nonce}  ──►
//	                           ◄──   Bridge{certificate, host key, signature and pass over the nonce}
//	Proof of the host key      ──►
//	or Refuse{code, reason}    ──►
type Bridger struct {
	exchange
	cert Certificate
	// peer is the index of the other forwarder.
	peer uint16
	// number is the number of the connection between the two.
	number uint16
	own    *Terms
	fresh  [wire.NonceLen]byte
	host   witness
	// seal is the channel of a sealed job.
	seal *seal.Channel
}

// NewBridger starts an exchange with the forwarder that has the index to in the job's zippers, for
// the connection of that number between the two. own are the keys that the forwarder here shows;
// fresh is random bytes for this link.
func NewBridger(cert Certificate, to, number int, own *Terms, fresh [wire.NonceLen]byte) *Bridger {
	return &Bridger{exchange: exchange{hint: forwarderHint, strict: own.Strict}, cert: cert, peer: uint16(to), number: uint16(number),
		own: own, fresh: fresh}
}

// HandleMessage handles a frame from the other forwarder. It does not keep body.
func (b *Bridger) HandleMessage(h wire.Header, body []byte) {
	if b.ends(h, body) {
		return
	}
	switch {
	case h.Type == wire.TypeChallenge && b.state == awaitChallenge:
		if c, ok := b.challenged(h, body); ok {
			b.answer(&c, body)
		}
	case h.Type == wire.TypeProof && b.state == awaitProof:
		p, err := wire.ParseProof(body)
		switch {
		case err != nil:
			b.malformed(h, err)
		case !b.host.good(&p):
			b.refuse(wire.RefuseHostKey, noProof)
		default:
			b.bridged()
		}
	default:
		b.unexpected(h)
	}
}

func (b *Bridger) answer(c *wire.Challenge, body []byte) {
	join := &b.cert.join
	if join.Version < c.Oldest || join.Version > c.Version {
		b.refuse(wire.RefuseVersion, fmt.Sprintf("the job has protocol version %d, the other forwarder speaks %s: install the same release of Zipper there (COMPATIBILITY.md)",
			join.Version, wire.Versions(c.Oldest, c.Version)))
		return
	}
	if r := b.host.challenged(c, body, hostKeyOf(join, b.peer)); r != nil {
		b.refuse(r.Code, r.Reason)
		return
	}
	f := wire.Bridge{Version: join.Version, From: join.Here, To: b.peer, Number: b.number, Fresh: b.fresh,
		Nonce: b.cert.nonce, OwnKey: b.own.Keys.Public, LinkKey: c.LinkKey, Join: *join}
	if host := b.own.HostKey; host != nil {
		copy(f.HostKey[:], host.Public().(ed25519.PublicKey))
		copy(f.Proof[:], ed25519.Sign(host, signedHost(&f, c.Nonce)))
	}
	pass, err := b.own.Keys.Visit(c.LinkKey)
	if err != nil {
		b.malformed(wire.Control(wire.TypeChallenge), err)
		return
	}
	f.Pass = pass.Show(shownBridge(&f, c.Nonce))
	if f.Join.Sealed() {
		if b.seal, err = b.own.Keys.Dialled(c.LinkKey, c.Nonce); err != nil {
			b.malformed(wire.Header{Type: wire.TypeChallenge}, err)
			return
		}
	}
	b.send(wire.TypeBridge, &f)
	b.host.answered(wire.TypeBridge, &f)
	if b.host.waits() {
		b.to(awaitProof)
		return
	}
	b.bridged()
}

func (b *Bridger) bridged() {
	b.push(Event{Kind: Bridged, Join: &b.cert.join, Seal: b.seal})
	b.to(over)
}

// hostKeyOf returns the host key that a job demands of one of its forwarders, or zero for any key.
func hostKeyOf(j *wire.Join, zipper uint16) (key [wire.PublicKeyLen]byte) {
	if int(zipper) < len(j.Zippers) {
		key = j.Zippers[zipper].HostKey
	}
	return key
}

// handleBridge checks a forwarder's claim to serve a job.
func (a *Acceptor) handleBridge(h wire.Header, x *Examined) {
	f, err := x.bridge, x.err
	wants := hostKeyOf(&f.Join, f.From)
	switch {
	case err != nil:
		a.malformed(h, err)
	case !wire.Speaks(f.Version):
		a.otherVersion(f.Version, f.Version)
	case !x.genuine:
		a.refuse(wire.RefuseSecret, "the other forwarder cannot show that a rank of the job has joined it")
	case !x.wanted:
		a.refuse(wire.RefuseSecret, otherSecret)
	case !x.host:
		a.refuse(wire.RefuseHostKey, noProof)
	case wants != f.HostKey && wants != [wire.PublicKeyLen]byte{}:
		a.refuse(wire.RefuseHostKey, otherHost(f.HostKey, wants).Reason)
	default:
		a.to(awaitDecision)
		a.sendProof(x)
		a.push(Event{Kind: Bridged, Join: &f.Join, To: int(f.To), Number: int(f.Number), Seal: x.seal, User: x.user,
			Ticket: x.ticket})
	}
}

// Certificate returns the certificate for the Join that this exchange has verified.
func (a *Acceptor) Certificate(j *wire.Join) Certificate { return Certificate{a.nonce, *j} }

// Release ends the exchange without an answer, because the link is one between forwarders.
func (a *Acceptor) Release() {
	if a.state != over {
		a.to(over)
	}
}

// signedHost returns the text that the dialling forwarder's host key signs.
func signedHost(f *wire.Bridge, nonce [wire.NonceLen]byte) []byte {
	b := append([]byte("zipper bridge host\x00"), nonce[:]...)
	return f.AppendUnsigned(b)
}

// visits tells whether the other end has the private half of its link key.
func (a *Acceptor) visits(f *wire.Bridge) bool {
	pass, err := a.terms.Keys.Pass(f.OwnKey)
	return err == nil && pass.Good(f.Pass, shownBridge(f, a.nonce))
}

// shownBridge returns the text for which a Bridge's pass is shown.
func shownBridge(f *wire.Bridge, nonce [wire.NonceLen]byte) []byte {
	b := append([]byte("zipper bridge\x00"), nonce[:]...)
	return f.AppendUnsigned(b)
}
