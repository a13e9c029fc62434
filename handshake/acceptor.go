package handshake

import (
	"crypto/ed25519"

	"github.com/leidenzipper/zipper/internal/seal"
	"github.com/leidenzipper/zipper/internal/wire"
)

// Acceptor is the forwarder's end of the join exchange on one link. Not safe for concurrent use.
type Acceptor struct {
	exchange
	nonce     [wire.NonceLen]byte
	terms     *Terms
	challenge []byte // its body, as it was sent
	unproven  []byte // what the host key has to sign for a joiner that waits; nil: nothing
	proof     []byte // a frame that goes before all that is said next
}

// Terms are what a forwarder asks of those who come, and what it shows them. They do not change.
type Terms struct {
	Secret  string             // if not empty, only jobs made from it are let in
	NAT     bool               // joiners are asked where they take connections
	HostKey ed25519.PrivateKey // nil: none
	Keys    *seal.Forwarder    // for links of sealed jobs
	// Ticket, if not nil, names the user of a Join, or says what is wrong with its ticket. Any
	// goroutine.
	Ticket func(j *wire.Join) (user string, err error)
	// Strict makes an illegal transition of an exchange panic; otherwise it ends that exchange.
	Strict bool
}

// NewAcceptor starts an exchange for a link that has just come in. The nonce is fresh random bytes.
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

// HandleMessage takes a frame from the joiner. body is not kept.
func (a *Acceptor) HandleMessage(h wire.Header, body []byte) {
	seen := a.Examine(h, body, nil)
	a.HandleExamined(h, body, &seen)
}

// Passes gives the pass of the job that a Join names, if a rank of it with the same guest key has
// been verified; else nil. Any goroutine.
type Passes func(j *wire.Join) *seal.Pass

// Examined is what of a Join or Bridge does not depend on how far the exchange is.
type Examined struct {
	join    *wire.Join
	bridge  *wire.Bridge
	half    *wire.Half
	err     error
	genuine bool          // signed as it has to be
	wanted  bool          // made from the operator's secret, if there is one
	host    bool          // Bridge: the other forwarder has the host key that it shows, if it shows one
	user    string        // whom the ticket names
	ticket  error         // what is wrong with it
	proof   *wire.Proof   // Bridge: of our host key
	signs   []byte        // Join: what that has to sign
	seal    *seal.Channel // of a sealed job
	pass    *seal.Pass    // Join: that it has shown
}

// Examine parses a frame and checks its signatures: all of HandleMessage that takes long. It
// changes nothing, so it may be called beside any other method. known, if not nil, spares it most
// of the signatures.
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

// member reports whether a Join is by somebody who has the job's secret. Its pass shows that, in a
// tenth of the time that its signature takes. The signature has to be good as well in the first
// Join of a job, because it says whose the pass is; and in all Joins of a job of several hops,
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

// HandleExamined takes a frame that Examine has seen. body is not kept.
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
	a.came = j
	switch {
	case err != nil:
		a.malformed(h, err)
	case !wire.Speaks(j.Version):
		a.otherVersion(j.Version, j.Version)
	case !x.genuine:
		a.refuse(wire.RefuseSecret, "the signature does not fit the Join")
	case !x.wanted:
		a.refuse(wire.RefuseSecret, otherSecret)
	default:
		a.to(awaitDecision)
		a.unproven, a.challenge = x.signs, nil
		a.push(Event{Kind: Verified, Join: j, Pass: x.pass, Seal: x.seal, User: x.user, Ticket: x.ticket})
	}
}

// Placed notes that the owner has taken what the Join says: it is kept here no longer.
func (a *Acceptor) Placed() { a.came = nil }

// Admit lets a verified joiner in. The frames for it, which have some bytes for every rank of the
// job, are made in the memory of room if that is large enough, and returned: when they have been
// sent it may be the room of the next one.
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

// proveAlone sees to it that the joiner's Proof goes before what is said to it next.
func (a *Acceptor) proveAlone() {
	if a.unproven != nil {
		a.proof = wire.AppendFrame(nil, wire.Control(wire.TypeProof), a.sign(a.unproven))
		a.unproven = nil
	}
}

// Notice tells a verified joiner what it waits for.
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

// Refuse ends the exchange with a reason; harmless when it has ended already.
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

// wanted reports whether the operator's secret, if there is one, is the job's.
func (a *Acceptor) wanted(j *wire.Join) bool { return a.ofOperator(j.Job, j.PublicKey) }

func (a *Acceptor) ofOperator(job string, key [wire.PublicKeyLen]byte) bool {
	return a.terms.Secret == "" || ed25519.PublicKey(key[:]).Equal(Key(job, a.terms.Secret).Public())
}
