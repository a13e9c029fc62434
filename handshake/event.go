package handshake

import (
	"fmt"

	"github.com/leidenzipper/zipper/wire"
)

// Event is something the owner of a state machine has to do.
type Event struct {
	Kind   EventKind
	Frame  []byte      // Send: a whole frame
	Join   wire.Join   // Verified, Bridged; Acceptor's Ended: as far as one came, proven to be made with its key only if the Refused is not one of RefuseSecret or RefuseMalformed
	To     int         // Bridged: this forwarder's index in the job's zippers; Met: the other end's virtual rank
	Layout wire.Layout // Joined
	Text   string      // Told
	Err    *Refused    // Ended
}

// EventKind says which.
type EventKind int

// Kinds of events.
const (
	Send     EventKind = iota // send Frame
	Bridged                   // Acceptor, Bridger: the link is one between forwarders of the Join's job, made by its forwarder Join.Here; the machine is done (Acceptor: after Refuse or Release)
	Verified                  // Acceptor: Join is authentic; answer with Admit or Refuse
	Asked                     // Joiner: the forwarder's kernel can pass connections on to this process; answer with Inside
	Joined                    // Joiner: the job is complete, Layout says who is in it; the machine is done
	Told                      // Joiner: the forwarder says what is missing
	Met                       // Meeting: the other end is rank To of this job; the machine is done
	Ended                     // it failed: close the link after what was to be sent; the machine is done
)

// Refused is why a join failed.
type Refused struct {
	Code   wire.RefuseCode
	Reason string
	Remote bool // the other end refused
}

func (r *Refused) Error() string {
	if r.Remote {
		return fmt.Sprintf("the other end refused (%v): %s", r.Code, r.Reason)
	}
	return fmt.Sprintf("refused (%v): %s", r.Code, r.Reason)
}

// queue holds events in order until NextEvent takes them.
type queue struct{ events []Event }

func (q *queue) push(e Event) { q.events = append(q.events, e) }

// NextEvent takes the next event; ok is false when there is none until the next call into the machine.
func (q *queue) NextEvent() (e Event, ok bool) {
	if len(q.events) == 0 {
		return Event{}, false
	}
	e = q.events[0]
	q.events = q.events[1:]
	return e, true
}

// control is the header of frames between the two ends of a link.
func control(t wire.Type) wire.Header {
	return wire.Header{Type: t, Src: wire.Nobody, Dst: wire.Nobody}
}

func versions(ours, theirs uint32) string {
	return fmt.Sprintf("protocol version %d there, %d here: install the same release of Zipper at both ends", theirs, ours)
}
