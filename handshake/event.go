package handshake

import (
	"errors"
	"fmt"

	"github.com/leidenzipper/zipper/internal/seal"
	"github.com/leidenzipper/zipper/internal/wire"
)

// Event is something the owner of a state machine has to do.
type Event struct {
	Kind  EventKind
	Frame []byte // Send: one or more whole frames
	// Verified, Bridged; Acceptor's Ended: what of a Join came. Unless the Refused is of
	// RefuseSecret or RefuseMalformed, it is proven to be made with its key. nil: none came
	Join   *wire.Join
	To     int         // Bridged: this forwarder's index in the job's zippers; Met: the other end's virtual rank
	Number int         // Bridged: which connection of the trunk between the two it is
	Layout wire.Layout // Joined
	User   string      // Verified, Bridged: whom the ticket names
	Ticket error       // Verified, Bridged: why the Join's ticket is not good; nil: it is, or none is demanded
	Text   string      // Told, Heard
	Half   *wire.Half  // Said
	// Verified, Bridged, Joined, if the job is sealed: for frames of a running job between the two
	// ends of the link; else nil
	Seal *seal.Channel
	Pass *seal.Pass // Verified: that the Join has shown, for Passes
	Err  *Refused   // Ended
}

// EventKind says which.
type EventKind int

// Kinds of events.
const (
	Send EventKind = iota // send Frame
	// Acceptor, Bridger: the link is one between forwarders of the Join's job, made by its
	// forwarder Join.Here; the machine is done (Acceptor: after Refuse or Release)
	Bridged
	Verified // Acceptor: Join is authentic; answer with Admit or Refuse
	// Joiner: the forwarder's kernel can pass connections on to this process; answer with Inside
	Asked
	Joined // Joiner: the job is complete, Layout says who is in it; the machine is done
	Told   // Joiner: the forwarder says what is missing
	Met    // Meeting: the other end is rank To of this job; the machine is done
	Said   // Acceptor: Half is the authentic word of who started a half; answer with Heard
	Heard  // Teller: the forwarder has heard it and says what came of it; the machine is done
	Ended  // it failed: close the link after what was to be sent; the machine is done
)

// Refused is why a join failed.
type Refused struct {
	Code   wire.RefuseCode
	Reason string
	Remote bool // the other end refused
}

// Final reports whether trying again, or elsewhere, does not change it.
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
