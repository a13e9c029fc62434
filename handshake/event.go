package handshake

import (
	"errors"
	"fmt"

	"github.com/leidenzipper/zipper/internal/seal"
	"github.com/leidenzipper/zipper/internal/wire"
)

// Event is a task for the owner of a state machine.
type Event struct {
	Kind EventKind
	// Frame has one or more whole frames, for Send.
	Frame []byte
	// Join is set for Verified, Bridged, and an Acceptor's Ended. Unless Err has RefuseSecret,
	// RefuseMalformed or RefuseVersion, it is proven to be made with its key. It is nil if no Join
	// came.
	Join *wire.Join
	// To is this forwarder's index in the job's zippers, for Bridged, and the other end's virtual
	// rank for Paired.
	To int
	// Number is the number of the connection in the trunk between the two forwarders, for Bridged.
	Number int
	// Layout is set for Joined.
	Layout wire.Layout
	// User is the user that the ticket names, for Verified and Bridged.
	User string
	// Ticket is the error about the Join's ticket, for Verified and Bridged. It is nil if the
	// ticket is good, or none is demanded.
	Ticket error
	// Text is set for Notified and Acknowledged.
	Text string
	// Half is set for HalfReported.
	Half *wire.Half
	// Seal is set for Verified, Bridged and Joined, if the job is sealed: it is for frames of a
	// running job between the two ends of the link.
	Seal *seal.Channel
	// Pass is the pass that the Join has shown, for Verified; Passes returns it.
	Pass *seal.Pass
	// Err is set for Ended.
	Err *Refused
}

// EventKind is the kind of an event.
type EventKind int

// Kinds of events.
const (
	Send EventKind = iota // send Frame
	// Bridged comes from an Acceptor and a Bridger: the link is one between forwarders of the
	// Join's job, made by its forwarder Join.Here. The machine is done (an Acceptor after Refuse or
	// Release).
	Bridged
	Verified // Acceptor: Join is authentic; the owner answers with Admit or Refuse
	// Asked comes from a Joiner: the forwarder's kernel can pass connections on to this process,
	// and the owner answers with Inside.
	Asked
	Joined       // Joiner: the job is complete, and Layout has its ranks; the machine is done
	Notified     // Joiner: the forwarder reports in Text which ranks are missing
	Paired       // Meeting: the other end is rank To of this job; the machine is done
	HalfReported // Acceptor: Half is an authentic report by a launcher; the owner answers with Acknowledge
	Acknowledged // Teller: the forwarder has acknowledged the report, with the result in Text; the machine is done
	Ended        // the exchange failed: close the link after the remaining frames; the machine is done
)

// Refused is the reason why a join failed.
type Refused struct {
	Code   wire.RefuseCode
	Reason string
	Remote bool // the other end refused
}

// Refusal returns a refusal by this end, whose reason is formatted as by fmt.Sprintf.
func Refusal(code wire.RefuseCode, format string, args ...any) *Refused {
	return &Refused{Code: code, Reason: fmt.Sprintf(format, args...)}
}

// Final tells whether another attempt, or one elsewhere, would fail as well.
func (r *Refused) Final() bool {
	switch r.Code {
	case wire.RefuseTimeout, wire.RefuseShutdown, wire.RefuseMalformed, wire.RefuseFull:
		return false
	}
	return true
}

func (r *Refused) Error() string {
	if r.Remote {
		return fmt.Sprintf("the other end refused (%v): %s", r.Code, r.Reason)
	}
	return fmt.Sprintf("refused (%v): %s", r.Code, r.Reason)
}

var errUnexpected = errors.New("not expected now")
