package handshake

import (
	"crypto/ed25519"
	"fmt"

	"github.com/leidenzipper/zipper/internal/wire"
)

// Meeting is one end of a new direct link between two ranks of a job. It is not safe for concurrent
// use.
//
//	responder (listens)                        initiator (connects)
//	Challenge{version, nonce}            ──►
//	                                     ◄──   Meet{ranks, instance, nonce, signature over the responder's nonce}
//	Meet{…, over the initiator's nonce}  ──►   met
//	or Refuse{code, reason}; the initiator may refuse too
type Meeting struct {
	exchange
	key ed25519.PrivateKey
	// mine is our Meet without the signature.
	mine wire.Meet
	// peer is the other end's nonce.
	peer [wire.NonceLen]byte
	// expected tells which ranks may connect to a responder; it is nil at an initiator.
	expected func(rank int) bool
}

const rankHint = " (is that a rank of this job?)"

// NewResponder starts the end of a rank that listens, whose Join had this instance. The nonce is
// fresh random bytes; expected tells which ranks may connect.
func NewResponder(key ed25519.PrivateKey, rank int, instance uint64, nonce [wire.NonceLen]byte,
	expected func(rank int) bool) *Meeting {
	m := &Meeting{exchange: exchange{state: awaitMeet, hint: rankHint}, key: key,
		mine: wire.Meet{From: uint32(rank), Instance: instance, Nonce: nonce}, expected: expected}
	m.send(wire.TypeChallenge, &wire.Challenge{Version: wire.Version, Oldest: wire.Oldest, Nonce: nonce})
	return m
}

// NewInitiator starts the end of a rank that has connected to the listener of another one. The
// nonce is fresh random bytes.
func NewInitiator(key ed25519.PrivateKey, rank int, door wire.Door, nonce [wire.NonceLen]byte) *Meeting {
	return &Meeting{exchange: exchange{hint: rankHint}, key: key,
		mine: wire.Meet{From: uint32(rank), To: door.Rank, Instance: door.Instance, Nonce: nonce}}
}

// HandleMessage handles a frame from the other end. It does not keep body.
func (m *Meeting) HandleMessage(h wire.Header, body []byte) {
	if m.ends(h, body) {
		return
	}
	switch {
	case h.Type == wire.TypeChallenge && m.state == awaitChallenge:
		if c, ok := m.challenged(h, body); ok {
			m.peer = c.Nonce
			m.say()
			m.to(awaitMeet)
		}
	case h.Type == wire.TypeMeet && m.state == awaitMeet:
		f, err := wire.ParseMeet(body)
		if err != nil {
			m.malformed(h, err)
			return
		}
		m.meet(&f)
	default:
		m.unexpected(h)
	}
}

func (m *Meeting) meet(f *wire.Meet) {
	responds := m.expected != nil
	switch {
	case !ed25519.Verify(m.key.Public().(ed25519.PublicKey), signedMeet(f, m.mine.Nonce), f.Signature[:]):
		m.refuse(wire.RefuseSecret, "the other end does not know the job's secret")
		return
	case f.To != m.mine.From || f.Instance != m.mine.Instance || responds && !m.expected(int(f.From)) ||
		!responds && f.From != m.mine.To:
		m.refuse(wire.RefuseJob,
			fmt.Sprintf("this is rank %d of another run, or of one in which rank %d has no direct link to it",
				m.mine.From, f.From))
		return
	}
	if responds {
		m.mine.To, m.peer = f.From, f.Nonce
		m.say()
	}
	m.push(Event{Kind: Paired, To: int(f.From)})
	m.to(over)
}

func (m *Meeting) say() {
	copy(m.mine.Signature[:], ed25519.Sign(m.key, signedMeet(&m.mine, m.peer)))
	m.send(wire.TypeMeet, &m.mine)
}

func signedMeet(f *wire.Meet, nonce [wire.NonceLen]byte) []byte {
	b := append([]byte("zipper meet\x00"), nonce[:]...)
	return f.AppendUnsigned(b)
}
