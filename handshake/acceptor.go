package handshake

import (
	"crypto/ed25519"

	"github.com/leidenzipper/zipper/internal/seal"
	"github.com/leidenzipper/zipper/internal/wire"
)

// Acceptor is the forwarder's end of the join exchange on one link. It is not safe for concurrent
// use.
type Acceptor struct {
	exchange
	nonce [wire.NonceLen]byte
	terms *Terms
	// challenge is the body of the Challenge, as it was sent.
	challenge []byte
	// unproven is the text that the host key has to sign for a joiner that waits; nil if there is
	// none.
	unproven []byte
	// proof is a frame that goes before the next frame to the joiner.
	proof []byte
}

// Terms are a forwarder's demands on joiners, and the keys that it shows them. They do not change.
type Terms struct {
	// Secret, if not empty, admits only jobs made from it, and those that are present.
	Secret string
	// Present reports whether a job with an id and a key is here already; nil: none is. It may be
	// called from any goroutine.
	Present func(job string, key [wire.PublicKeyLen]byte) bool
	// NAT has joiners asked for the address where they take connections.
	NAT bool
	// HostKey is the forwarder's host key; nil if it has none.
	HostKey ed25519.PrivateKey
	// Keys are for links of sealed jobs.
	Keys *seal.Forwarder
	// Ticket, if not nil, returns the user of a Join, or an error about its ticket. It may be
	// called from any goroutine.
	Ticket func(j *wire.Join) (user string, err error)
	// Strict makes an illegal transition of an exchange panic; otherwise it ends that exchange.
	Strict bool
}

// NewAcceptor starts an exchange for a new incoming link. The nonce is fresh random bytes.
func NewAcceptor(nonce [wire.NonceLen]byte, terms *Terms) *Acceptor {
	a := &Acceptor{exchange: exchange{state: awaitJoin, strict: terms.Strict}, nonce: nonce, terms: terms}
	c := &wire.Challenge{Version: wire.Version, Oldest: wire.Oldest, Nonce: nonce, NAT: terms.NAT,
		LinkKey: terms.Keys.Public}
	if terms.HostKey != nil {
		copy(c.HostKey[:], terms.HostKey.Public().(ed25519.PublicKey))
	}
	frame := wire.AppendFrame(make([]byte, 0, roomForFrame), wire.Control(wire.TypeChallenge), c)
	a.challenge = frame[wire.HeaderLen:]
	a.push(Event{Kind: Send, Frame: frame})
	return a
}

// HandleMessage handles a frame from the joiner. It does not keep body.
func (a *Acceptor) HandleMessage(h wire.Header, body []byte) {
	seen := a.Examine(h, body, nil)
	a.HandleExamined(h, body, &seen)
}

// Passes returns the pass of the job that a Join names, if a rank of it with the same guest key has
// been verified; else nil. It may be called from any goroutine.
type Passes func(j *wire.Join) *seal.Pass

// Examined holds the results for a Join or Bridge that do not depend on the state of the exchange.
type Examined struct {
	join   *wire.Join
	bridge *wire.Bridge
	half   *wire.Half
	err    error
	// genuine tells that the frame is signed as it must be.
	genuine bool
	// wanted tells that the job is made from the operator's secret, if there is one.
	wanted bool
	// host tells that the sender of a Bridge has the host key that it shows, if it shows one.
	host bool
	// user is the user that the ticket names.
	user string
	// ticket is the error about the ticket.
	ticket error
	// proof is the Proof of our host key, for a Bridge.
	proof *wire.Proof
	// signs is the text that the host key has to sign, for a Join.
	signs []byte
	// seal is the channel of a sealed job.
	seal *seal.Channel
	// pass is the pass that a Join has shown.
	pass *seal.Pass
}

// Examine parses a frame and checks its signatures: the slow part of HandleMessage. It changes
// nothing, so other threads may meanwhile call any method except HandleMessage and HandleExamined.
// known, if not nil, saves most of the signatures.
func (a *Acceptor) Examine(h wire.Header, body []byte, known Passes) (x Examined) {
	switch h.Type {
	case wire.TypeJoin:
		var j wire.Join
		j, x.err = wire.ParseJoin(body)
		x.join = &j
		x.genuine = x.err == nil && wire.Speaks(x.join.Version) && x.join.LinkKey == a.terms.Keys.Public &&
			a.member(&x, body, known)
		x.wanted = x.genuine && a.wanted(x.join)
		if x.wanted && x.join.Sealed() {
			x.seal, x.err = a.terms.Keys.Link(x.join.SealKey, a.nonce)
		}
		if x.wanted {
			x.user, x.ticket = a.ticket(x.join)
			if a.terms.HostKey != nil {
				x.signs = proofOf(a.challenge, h.Type, body)
			}
		}
	case wire.TypeBridge:
		var b wire.Bridge
		b, x.err = wire.ParseBridge(body)
		f := &b
		x.bridge = f
		x.genuine = x.err == nil && wire.Speaks(f.Version) && verify(&f.Join, f.Nonce) &&
			f.OwnKey == f.Join.LinkKey && f.LinkKey == a.terms.Keys.Public && a.visits(f)
		x.wanted = x.genuine && a.wanted(&f.Join)
		if x.wanted && f.Join.Sealed() {
			x.seal, x.err = a.terms.Keys.Link(f.OwnKey, a.nonce)
		}
		x.host = f.HostKey == [wire.PublicKeyLen]byte{} || ed25519.Verify(f.HostKey[:], signedHost(f, a.nonce),
			f.Proof[:])
		if x.wanted && x.host {
			x.user, x.ticket = a.ticket(&f.Join)
			x.proof = a.prove(h.Type, body)
		}
	case wire.TypeHalf:
		var b wire.Half
		b, x.err = wire.ParseHalf(body)
		h := &b
		x.half = h
		x.genuine = x.err == nil && wire.Speaks(h.Version) &&
			ed25519.Verify(h.PublicKey[:], signedHalf(h, a.nonce), h.Signature[:])
		x.wanted = x.genuine && a.ofOperator(h.Job, h.PublicKey)
	}
	return x
}

// member tells whether a Join is from a process that has the job's secret. Its pass shows that, in
// a tenth of the time that its signature takes. The signature must be good as well in the first
// Join of a job, because it ties the pass to the job, and in all Joins of a job of several hops,
// because other forwarders see them.
func (a *Acceptor) member(x *Examined, body []byte, known Passes) bool {
	j := x.join
	if known != nil && len(j.Zippers) == 0 {
		x.pass = known(j)
	}
	if x.pass == nil {
		var err error
		if !verify(j, a.nonce) {
			return false
		}
		if x.pass, err = a.terms.Keys.Pass(j.Guest); err != nil {
			return false
		}
	}
	return x.pass.Good(j.Pass, []byte(shownWith), a.nonce[:], body[:len(body)-len(j.Pass)])
}

// HandleExamined handles a frame that Examine has checked. It does not keep body.
func (a *Acceptor) HandleExamined(h wire.Header, body []byte, x *Examined) {
	if a.ends(h, body) {
		return
	}
	switch {
	case h.Type == wire.TypePong && a.state == awaitDecision:
	case h.Type == wire.TypeJoin && a.state == awaitJoin:
		a.handleJoin(h, x)
	case h.Type == wire.TypeBridge && a.state == awaitJoin:
		a.handleBridge(h, x)
	case h.Type == wire.TypeHalf && a.state == awaitJoin:
		a.handleHalf(h, x)
	default:
		a.unexpected(h)
	}
}

func (a *Acceptor) handleJoin(h wire.Header, x *Examined) {
	j, err := x.join, x.err
	a.waiting = j
	switch {
	case err != nil:
		a.malformed(h, err)
	case !wire.Speaks(j.Version):
		a.otherVersion(j.Version, j.Version)
	case !x.genuine:
		a.refuse(wire.RefuseSecret, "the signature does not match the Join")
	case !x.wanted:
		a.refuse(wire.RefuseSecret, otherSecret)
	default:
		a.to(awaitDecision)
		a.unproven, a.challenge = x.signs, nil
		a.push(Event{Kind: Verified, Join: j, Pass: x.pass, Seal: x.seal, User: x.user, Ticket: x.ticket})
	}
}

// Placed tells that the owner has taken the Join's contents: the exchange keeps them no longer.
func (a *Acceptor) Placed() { a.waiting = nil }

// Admit admits a verified joiner and returns the frames for it, which have some bytes for every
// rank of the job. They are made in the memory of room if that is large enough; once they have been
// sent, they may be the room of the next joiner.
func (a *Acceptor) Admit(l *wire.Layout, room []byte) []byte {
	if a.state != awaitDecision {
		return room
	}
	a.proveAlone()
	frames := wire.AppendFrame(append(room[:0], a.proof...), wire.Control(wire.TypeLayout), l)
	a.proof = nil
	a.push(Event{Kind: Send, Frame: frames})
	a.to(over)
	return frames
}

// proveAlone puts the joiner's Proof before the next frame to it.
func (a *Acceptor) proveAlone() {
	if a.unproven != nil {
		a.proof = wire.AppendFrame(nil, wire.Control(wire.TypeProof), a.sign(a.unproven))
		a.unproven = nil
	}
}

// Notice tells a verified joiner which ranks it waits for.
func (a *Acceptor) Notice(text string) {
	if a.state == awaitDecision {
		a.proveAlone()
		if a.proof != nil {
			a.push(Event{Kind: Send, Frame: a.proof})
			a.proof = nil
		}
		a.send(wire.TypeNotice, &wire.Notice{Text: text})
	}
}

// Refuse ends the exchange with a reason. It does nothing when the exchange has ended.
func (a *Acceptor) Refuse(code wire.RefuseCode, reason string) {
	if a.state != over {
		a.refuse(code, reason)
	}
}

func (a *Acceptor) sendProof(x *Examined) {
	if x.proof != nil {
		a.send(wire.TypeProof, x.proof)
	}
}

func (a *Acceptor) ticket(j *wire.Join) (user string, err error) {
	if a.terms.Ticket == nil {
		return "", nil
	}
	return a.terms.Ticket(j)
}

const otherSecret = "the job's secret is not the one this forwarder was started with"

// wanted tells whether the operator's secret, if there is one, is the job's, or the job is present.
func (a *Acceptor) wanted(j *wire.Join) bool { return a.ofOperator(j.Job, j.PublicKey) }

func (a *Acceptor) ofOperator(job string, key [wire.PublicKeyLen]byte) bool {
	return a.terms.Secret == "" || ed25519.PublicKey(key[:]).Equal(Key(job, a.terms.Secret).Public()) ||
		a.terms.Present != nil && a.terms.Present(job, key)
}
