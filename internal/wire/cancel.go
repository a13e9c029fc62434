package wire

import "errors"

// These are the sizes of the cancel bodies in bytes.
const (
	CancelLen      = 8
	CancelReplyLen = 16
)

// Cancel takes back the RTS of request Sender if no receive has matched it yet.
//
//	0  u64  sender    the sender's request, from the RTS
type Cancel struct{ Sender uint64 }

// Append appends the encoded body of the frame to b and returns the extended slice.
func (c *Cancel) Append(b []byte) []byte { return le.AppendUint64(b, c.Sender) }

// ParseCancel parses a Cancel that fills b.
func ParseCancel(b []byte) (Cancel, error) {
	s, err := parseHandle(b)
	return Cancel{s}, err
}

// CancelReply says whether the cancel was in time.
//
//	0  u64  sender    the sender's request, from the Cancel
//	8  u64  ok        1: taken back; 0: too late
type CancelReply struct {
	Sender uint64
	OK     bool
}

// Append appends the encoded body of the frame to b and returns the extended slice.
func (c *CancelReply) Append(b []byte) []byte {
	var ok uint64
	if c.OK {
		ok = 1
	}
	return le.AppendUint64(le.AppendUint64(b, c.Sender), ok)
}

// ParseCancelReply parses a CancelReply that fills b.
func ParseCancelReply(b []byte) (CancelReply, error) {
	if err := exactly(b, CancelReplyLen); err != nil {
		return CancelReply{}, err
	}
	ok := le.Uint64(b[8:])
	if ok > 1 {
		return CancelReply{}, errors.New("wire: cancel reply is neither yes nor no")
	}
	return CancelReply{le.Uint64(b), ok == 1}, nil
}
