package handshake

import (
	"fmt"

	"github.com/leidenzipper/zipper/internal/wire"
)

// state is the state of one end of an exchange. These frames and calls change it:
//
//	Acceptor   awaitJoin ─Join or Bridge→ awaitDecision ─Admit or Release→ over
//	Joiner     awaitChallenge ─Challenge→ awaitProof ─Proof→ awaitLayout ─Layout→ over
//	           awaitChallenge ─Challenge with NAT→ awaitInside ─Inside→ awaitProof
//	Bridger    awaitChallenge ─Challenge→ awaitProof ─Proof→ over
//	both       without awaitProof if the forwarder has no host key
//	Acceptor   awaitJoin ─Half→ awaitDecision ─Acknowledge→ over
//	Teller     awaitChallenge ─Challenge→ awaitNotice ─Notice→ over
//	Meeting    awaitMeet ─Meet→ over                            (responder)
//	           awaitChallenge ─Challenge→ awaitMeet ─Meet→ over  (initiator)
//	all        ─Refuse of either end→ over
type state uint8

const (
	awaitChallenge state = iota // the other end sends first; only Challenge or Refuse may come
	awaitJoin                   // Challenge is sent; only Join, Bridge, Half or Refuse may come
	awaitDecision               // the owner decides; only Refuse and Pong may come
	awaitInside                 // the owner gives its address for connections; only Refuse and Ping may come
	// Join or Bridge is sent; Proof or Refuse decides. To a Joiner, Pings may come before.
	awaitProof
	awaitLayout // Join is sent; Layout or Refuse decides, Pings and Notices may come before
	awaitMeet   // Challenge or Meet is sent; only Meet or Refuse may come
	awaitNotice // Half is sent; Notice or Refuse decides, Pings may come before
	over        // incoming frames are ignored, and no frame is sent
)

var stateNames = [...]string{"await challenge", "await join", "await decision", "await inside", "await proof",
	"await layout",
	"await meet", "await notice", "over"}

func (s state) String() string { return stateNames[s] }

// legal[from] is the set of states that may follow.
var legal = [...]uint16{
	awaitChallenge: 1<<awaitInside | 1<<awaitProof | 1<<awaitLayout | 1<<awaitMeet | 1<<awaitNotice | 1<<over,
	awaitJoin:      1<<awaitDecision | 1<<over,
	awaitDecision:  1 << over,
	awaitInside:    1<<awaitProof | 1<<awaitLayout | 1<<over,
	awaitProof:     1<<awaitLayout | 1<<over,
	awaitLayout:    1 << over,
	awaitMeet:      1 << over,
	awaitNotice:    1 << over,
	over:           0,
}

// exchange is the common part of all ends: events in order, the state, and failures.
type exchange struct {
	events []Event
	state  state
	// hint follows the error about a bad frame, for the user.
	hint string
	// waiting is the Join that an Acceptor has received, authentic or not, until Placed; nil if
	// there is none.
	waiting *wire.Join
	// strict makes an illegal transition panic; otherwise the transition ends the exchange.
	strict bool
	// broken tells that an illegal transition has ended the exchange, which has no further events.
	broken bool
}

// to moves the exchange to the next state. An illegal transition is a defect of this program. It
// ends the exchange with an internal error that names the transition, and has no effect on one that
// is over.
func (x *exchange) to(s state) {
	if legal[x.state]&(1<<s) == 0 {
		x.illegal(s)
		return
	}
	x.state = s
}

func (x *exchange) illegal(next state) {
	reason := fmt.Sprintf("internal error: a handshake cannot go from %v to %v (please report this)", x.state, next)
	if x.strict {
		panic(reason)
	}
	if x.state != over {
		x.refuse(wire.RefuseShutdown, reason)
	}
	x.broken = true
}

// push adds an event, unless the exchange is broken: a method that continues after an illegal
// transition has no effect on the owner.
func (x *exchange) push(e Event) {
	if !x.broken {
		x.events = append(x.events, e)
	}
}

// NextEvent takes the next event; ok is false when there is none until the next call into the
// machine.
func (x *exchange) NextEvent() (e Event, ok bool) {
	if len(x.events) == 0 {
		return Event{}, false
	}
	e = x.events[0]
	if x.events = x.events[1:]; len(x.events) == 0 {
		x.events = nil // an exchange that waits long keeps little memory
	}
	return e, true
}

// send has the owner send a frame between the two ends of the link; body may be nil.
func (x *exchange) send(t wire.Type, body wire.Body) {
	x.push(Event{Kind: Send, Frame: wire.AppendFrame(nil, wire.Control(t), body)})
}

// ends handles the frames that every end handles alike, and tells whether the frame was one of
// them: frames after the end are ignored, and a Refuse of the other end is the end.
func (x *exchange) ends(h wire.Header, body []byte) bool {
	if x.state == over {
		return true
	}
	if h.Type != wire.TypeRefuse {
		return false
	}
	r, err := wire.ParseRefuse(body)
	if err != nil {
		x.malformed(h, err)
	} else {
		x.fail(&Refused{r.Code, wire.Printable(r.Reason), true})
	}
	return true
}

// refuse sends the other end the reason for the end of the exchange.
func (x *exchange) refuse(code wire.RefuseCode, reason string) {
	x.send(wire.TypeRefuse, &wire.Refuse{Code: code, Reason: reason})
	x.fail(&Refused{code, reason, false})
}

// otherVersion refuses an end that speaks the protocol's versions from oldest to newest.
func (x *exchange) otherVersion(oldest, newest uint32) {
	x.refuse(wire.RefuseVersion,
		fmt.Sprintf("protocol %s there, %s here: install releases of Zipper that fit each other (COMPATIBILITY.md)",
			wire.Versions(oldest, newest), wire.Versions(wire.Oldest, wire.Version)))
}

func (x *exchange) malformed(h wire.Header, err error) {
	x.refuse(wire.RefuseMalformed, fmt.Sprintf("bad %v frame: %v%s", h.Type, err, x.hint))
}

// unexpected refuses a frame of a type that may not come in this state.
func (x *exchange) unexpected(h wire.Header) { x.malformed(h, errUnexpected) }

func (x *exchange) fail(why *Refused) {
	x.to(over)
	x.push(Event{Kind: Ended, Err: why, Join: x.waiting})
}

// challenged handles the first frame of the end that sends first; ok tells that it is good.
func (x *exchange) challenged(h wire.Header, body []byte) (c wire.Challenge, ok bool) {
	c, err := wire.ParseChallenge(body)
	switch {
	case err != nil:
		x.malformed(h, err)
	default:
		if _, ok = c.Common(); !ok {
			x.otherVersion(c.Oldest, c.Version)
		}
	}
	return c, ok
}
