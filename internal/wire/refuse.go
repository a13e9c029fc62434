package wire

import "fmt"

// RefuseCode is the reason for a refused link, for programs. Reason is the text for people.
type RefuseCode uint32

// These are the reasons for a refused join.
const (
	RefuseMalformed RefuseCode = 1 // a frame that no honest peer of this version sends
	RefuseVersion   RefuseCode = 2 // other protocol version
	RefuseSecret    RefuseCode = 3 // the signature is invalid, or made with another secret
	// the forwarder does not serve this job, or the rank that was dialled belongs to another run
	RefuseJob      RefuseCode = 4
	RefuseLayout   RefuseCode = 5  // clusters or sizes differ from those of the ranks that have joined
	RefuseTaken    RefuseCode = 6  // this rank of this cluster has already joined
	RefuseModel    RefuseCode = 7  // data model differs
	RefuseTimeout  RefuseCode = 8  // ranks are missing at the end of the time-out
	RefuseShutdown RefuseCode = 9  // the forwarder is ending
	RefuseSettings RefuseCode = 10 // protocol or settings differ
	RefuseHostKey  RefuseCode = 11 // a forwarder does not have the expected host key
	RefuseTicket   RefuseCode = 12 // the job has no valid ticket
	RefuseHalf     RefuseCode = 13 // another cluster's half of the job has ended
	// the rank waits for another job and has to join again, over the path that the reason describes
	// (handshake.Way)
	RefuseMeeting RefuseCode = 14
	// the forwarder has as many jobs or links, or keeps as much memory, as its limits allow
	RefuseFull RefuseCode = 15
)

var refuseNames = [...]string{"", "malformed", "wrong version", "wrong secret", "wrong job", "layout differs",
	"rank taken",
	"data model differs", "time-out", "shutting down", "settings differ", "wrong host key", "no ticket", "half is gone",
	"another way", "no room now"}

func (c RefuseCode) String() string {
	if c >= 1 && int(c) < len(refuseNames) {
		return refuseNames[c]
	}
	return fmt.Sprintf("code %d", uint32(c))
}

// Refuse ends a link before or instead of a job, with the reason. The sender closes the link after
// it.
//
//	0  u32     code
//	4  string  reason  a sentence that says what to do
type Refuse struct {
	Code   RefuseCode
	Reason string
}

// Append appends the encoded body of the frame to b and returns the extended slice.
func (f *Refuse) Append(b []byte) []byte {
	return appendString(le.AppendUint32(b, uint32(f.Code)), f.Reason)
}

// ParseRefuse parses a Refuse that fills b. Unknown codes are kept.
func ParseRefuse(b []byte) (Refuse, error) {
	r := reader{b: b}
	f := Refuse{RefuseCode(r.u32()), r.string()}
	if err := r.end(); err != nil {
		return Refuse{}, err
	}
	return f, nil
}
