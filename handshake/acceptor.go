package handshake

import (
	"crypto/ed25519"
	"fmt"

	"github.com/leidenzipper/zipper/wire"
)

// Acceptor is the forwarder's end of the join exchange on one link. Not safe for concurrent use.
type Acceptor struct {
	queue
	key    ed25519.PrivateKey // its public half is the nonce: a Join signed for it is this forwarder's Certificate
	nonce  [wire.NonceLen]byte
	secret string
	join   wire.Join // that came, authentic or not
	state  acceptorState
}

type acceptorState int

const (
	awaitJoin     acceptorState = iota // Challenge is sent; only Join or Refuse may come
	awaitDecision                      // the owner decides with Admit or Refuse; only Refuse and Pong may come
	acceptorDone
)

// NewAcceptor starts an exchange for a link that has just come in. The seed, fresh random bytes, gives the nonce.
// With a secret that is not empty only jobs made from it are let in. With nat joiners are asked where they take connections.
func NewAcceptor(seed [ed25519.SeedSize]byte, secret string, nat bool) *Acceptor {
	a := &Acceptor{key: ed25519.NewKeyFromSeed(seed[:]), secret: secret}
	copy(a.nonce[:], a.key.Public().(ed25519.PublicKey))
	a.push(Event{Kind: Send, Frame: wire.AppendFrame(nil, control(wire.TypeChallenge), &wire.Challenge{Version: wire.Version, Nonce: a.nonce, NAT: nat})})
	return a
}

// HandleMessage takes a frame from the joiner. body is not kept.
func (a *Acceptor) HandleMessage(h wire.Header, body []byte) {
	switch {
	case a.state == acceptorDone:
	case h.Type == wire.TypeRefuse:
		r, err := wire.ParseRefuse(body)
		if err != nil {
			a.malformed(h, err)
			return
		}
		a.end(&Refused{r.Code, r.Reason, true})
	case h.Type == wire.TypePong && a.state == awaitDecision:
	case h.Type == wire.TypeJoin && a.state == awaitJoin:
		a.handleJoin(h, body)
	case h.Type == wire.TypeBridge && a.state == awaitJoin:
		a.handleBridge(h, body)
	default:
		a.malformed(h, fmt.Errorf("not expected now"))
	}
}

func (a *Acceptor) handleJoin(h wire.Header, body []byte) {
	j, err := wire.ParseJoin(body)
	a.join = j
	switch {
	case err != nil:
		a.malformed(h, err)
	case j.Version != wire.Version:
		a.Refuse(wire.RefuseVersion, versions(wire.Version, j.Version))
	case !verify(&j, a.nonce):
		a.Refuse(wire.RefuseSecret, "the signature does not fit the Join")
	case !a.wanted(&j):
		a.Refuse(wire.RefuseSecret, otherSecret)
	default:
		a.state = awaitDecision
		a.push(Event{Kind: Verified, Join: j})
	}
}

// Admit lets a verified joiner in. The frame for it, which has some bytes for every rank of the job, is made in the memory of room if that is
// large enough, and returned: when it has been sent it may be the room of the next one.
func (a *Acceptor) Admit(l *wire.Layout, room []byte) []byte {
	if a.state != awaitDecision {
		return room
	}
	frame := wire.AppendFrame(room[:0], control(wire.TypeLayout), l)
	a.push(Event{Kind: Send, Frame: frame})
	a.state = acceptorDone
	return frame
}

// Notice tells a verified joiner what it waits for.
func (a *Acceptor) Notice(text string) {
	if a.state == awaitDecision {
		a.push(Event{Kind: Send, Frame: wire.AppendFrame(nil, control(wire.TypeNotice), &wire.Notice{Text: text})})
	}
}

// Refuse ends the exchange with a reason; harmless when it has ended already.
func (a *Acceptor) Refuse(code wire.RefuseCode, reason string) {
	if a.state == acceptorDone {
		return
	}
	a.push(Event{Kind: Send, Frame: wire.AppendFrame(nil, control(wire.TypeRefuse), &wire.Refuse{Code: code, Reason: reason})})
	a.end(&Refused{code, reason, false})
}

const otherSecret = "the job's secret is not the one this forwarder was started with"

// wanted reports whether the operator's secret, if there is one, is the job's.
func (a *Acceptor) wanted(j *wire.Join) bool {
	return a.secret == "" || ed25519.PublicKey(j.PublicKey[:]).Equal(Key(j.Job, a.secret).Public())
}

func (a *Acceptor) malformed(h wire.Header, err error) {
	a.Refuse(wire.RefuseMalformed, fmt.Sprintf("bad %v frame: %v", h.Type, err))
}

func (a *Acceptor) end(err *Refused) {
	a.push(Event{Kind: Ended, Err: err, Join: a.join})
	a.state = acceptorDone
}
