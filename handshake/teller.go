package handshake

import (
	"crypto/ed25519"
	"errors"
	"fmt"

	"github.com/leidenzipper/zipper/internal/wire"
)

// Teller is the end of a launcher that has started a cluster's half of a job, and reports the
// half's state to a forwarder. It is not safe for concurrent use.
//
//	forwarder (Acceptor)                  launcher (Teller)
//	Challenge{version, nonce}  ──►
//	                           ◄──        Half{job, cluster, state, reason, public key, signature}
//	Notice{what came of it}    ──►        heard
//	or Refuse{code, reason}
//
// The signature covers "zipper half" ‖ 0 ‖ nonce ‖ the Half without its signature. So only a
// process that knows the job's secret can end the job, once for each link.
type Teller struct {
	exchange
	half   wire.Half
	secret string
}

// NewTeller starts an exchange. State, Code, Job, Cluster, Reason, Ticket and the times of the half
// must be set.
func NewTeller(half wire.Half, secret string) (*Teller, error) {
	switch {
	case half.Job == "" || len(half.Job) > wire.MaxName || len(half.Cluster) > wire.MaxName:
		return nil, fmt.Errorf("handshake: job %.20q, cluster %.20q: want 1 to %d bytes", half.Job, half.Cluster,
			wire.MaxName)
	case secret == "":
		return nil, errors.New("handshake: the job has no secret")
	case len(half.Ticket) > wire.MaxTicket:
		return nil, fmt.Errorf("handshake: a ticket of %d bytes, at most %d are possible", len(half.Ticket),
			wire.MaxTicket)
	}
	return &Teller{exchange: exchange{hint: forwarderHint}, half: half, secret: secret}, nil
}

// HandleMessage handles a frame from the forwarder. It does not keep body.
func (t *Teller) HandleMessage(h wire.Header, body []byte) {
	if t.ends(h, body) {
		return
	}
	switch {
	case h.Type == wire.TypePing:
		t.send(wire.TypePong, nil)
	case h.Type == wire.TypeChallenge && t.state == awaitChallenge:
		c, ok := t.challenged(h, body)
		if !ok {
			return
		}
		key := Key(t.half.Job, t.secret)
		t.half.Version, _ = c.Common()
		copy(t.half.PublicKey[:], key.Public().(ed25519.PublicKey))
		copy(t.half.Signature[:], ed25519.Sign(key, signedHalf(&t.half, c.Nonce)))
		t.send(wire.TypeHalf, &t.half)
		t.to(awaitNotice)
	case h.Type == wire.TypeNotice && t.state == awaitNotice:
		n, err := wire.ParseNotice(body)
		if err != nil {
			t.malformed(h, err)
			return
		}
		t.to(over)
		t.push(Event{Kind: Acknowledged, Text: wire.Printable(n.Text)})
	default:
		t.unexpected(h)
	}
}

// handleHalf handles the report of a Teller.
func (a *Acceptor) handleHalf(h wire.Header, x *Examined) {
	switch {
	case x.err != nil:
		a.malformed(h, x.err)
	case !wire.Speaks(x.half.Version):
		a.otherVersion(x.half.Version, x.half.Version)
	case !x.genuine:
		a.refuse(wire.RefuseSecret, "the signature does not match the half's report")
	case !x.wanted:
		a.refuse(wire.RefuseSecret, otherSecret)
	default:
		a.to(awaitDecision)
		a.push(Event{Kind: HalfReported, Half: x.half})
	}
}

// Acknowledge answers HalfReported with the result, and ends the exchange.
func (a *Acceptor) Acknowledge(text string) {
	if a.state == awaitDecision {
		a.send(wire.TypeNotice, &wire.Notice{Text: text})
		a.to(over)
	}
}

func signedHalf(h *wire.Half, nonce [wire.NonceLen]byte) []byte {
	b := append([]byte("zipper half\x00"), nonce[:]...)
	return h.AppendUnsigned(b)
}
