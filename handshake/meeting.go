package handshake

import (
	"crypto/ed25519"
	"fmt"

	"github.com/leidenzipper/zipper/wire"
)

// Meeting is one end of a new direct link between two ranks of a job. Not safe for concurrent use.
//
//	host (has a door)                      guest (dialled it)
//	Challenge{version, nonce}        ──►
//	                                 ◄──   Meet{ranks, instance, nonce, signature over the host's nonce}
//	Meet{…, over the guest's nonce}  ──►   met
//	or Refuse{code, reason}; the guest may refuse too
type Meeting struct {
	queue
	key    ed25519.PrivateKey
	mine   wire.Meet // what we say, but for the signature
	theirs [wire.NonceLen]byte
	guests func(rank int) bool // host: who may come
	state  meetingState
}

type meetingState int

const (
	awaitNonce meetingState = iota // guest: the host speaks first
	awaitGuest                     // host: Challenge is sent
	awaitHost                      // guest: Meet is sent
	meetingDone
)

// NewHost starts the end of a rank with a door, whose Join had this instance. The nonce is fresh random bytes; guests tells which ranks may come.
func NewHost(key ed25519.PrivateKey, rank int, instance uint64, nonce [wire.NonceLen]byte, guests func(rank int) bool) *Meeting {
	m := &Meeting{key: key, mine: wire.Meet{From: uint32(rank), Instance: instance, Nonce: nonce}, guests: guests, state: awaitGuest}
	m.push(Event{Kind: Send, Frame: wire.AppendFrame(nil, control(wire.TypeChallenge), &wire.Challenge{Version: wire.Version, Nonce: nonce})})
	return m
}

// NewGuest starts the end of a rank that has dialled the door of another one.
func NewGuest(key ed25519.PrivateKey, rank int, door wire.Door, nonce [wire.NonceLen]byte) *Meeting {
	return &Meeting{key: key, mine: wire.Meet{From: uint32(rank), To: door.Rank, Instance: door.Instance, Nonce: nonce}}
}

// HandleMessage takes a frame from the other end. body is not kept.
func (m *Meeting) HandleMessage(h wire.Header, body []byte) {
	switch {
	case m.state == meetingDone:
	case h.Type == wire.TypeRefuse:
		r, err := wire.ParseRefuse(body)
		if err != nil {
			m.malformed(h, err)
			return
		}
		m.end(Event{Kind: Ended, Err: &Refused{r.Code, r.Reason, true}})
	case h.Type == wire.TypeChallenge && m.state == awaitNonce:
		c, err := wire.ParseChallenge(body)
		switch {
		case err != nil:
			m.malformed(h, err)
		case c.Version != wire.Version:
			m.refuse(wire.RefuseVersion, versions(wire.Version, c.Version))
		default:
			m.theirs = c.Nonce
			m.say()
			m.state = awaitHost
		}
	case h.Type == wire.TypeMeet && m.state >= awaitGuest:
		f, err := wire.ParseMeet(body)
		if err != nil {
			m.malformed(h, err)
			return
		}
		m.meet(&f)
	default:
		m.malformed(h, fmt.Errorf("not expected now"))
	}
}

func (m *Meeting) meet(f *wire.Meet) {
	host := m.state == awaitGuest
	switch {
	case !ed25519.Verify(m.key.Public().(ed25519.PublicKey), signedMeet(f, m.mine.Nonce), f.Signature[:]):
		m.refuse(wire.RefuseSecret, "the other end does not know the job's secret")
		return
	case f.To != m.mine.From || f.Instance != m.mine.Instance || host && !m.guests(int(f.From)) || !host && f.From != m.mine.To:
		m.refuse(wire.RefuseJob, fmt.Sprintf("this is rank %d of another run, or of one in which rank %d has no direct link to it", m.mine.From, f.From))
		return
	}
	if host {
		m.mine.To, m.theirs = f.From, f.Nonce
		m.say()
	}
	m.end(Event{Kind: Met, To: int(f.From)})
}

func (m *Meeting) say() {
	copy(m.mine.Signature[:], ed25519.Sign(m.key, signedMeet(&m.mine, m.theirs)))
	m.push(Event{Kind: Send, Frame: wire.AppendFrame(nil, control(wire.TypeMeet), &m.mine)})
}

func (m *Meeting) malformed(h wire.Header, err error) {
	m.refuse(wire.RefuseMalformed, fmt.Sprintf("bad %v frame: %v (is that a rank of this job?)", h.Type, err))
}

func (m *Meeting) refuse(code wire.RefuseCode, reason string) {
	m.push(Event{Kind: Send, Frame: wire.AppendFrame(nil, control(wire.TypeRefuse), &wire.Refuse{Code: code, Reason: reason})})
	m.end(Event{Kind: Ended, Err: &Refused{code, reason, false}})
}

func (m *Meeting) end(e Event) {
	m.push(e)
	m.state = meetingDone
}

func signedMeet(f *wire.Meet, nonce [wire.NonceLen]byte) []byte {
	b := append([]byte("zipper meet\x00"), nonce[:]...)
	return f.AppendUnsigned(b)
}
