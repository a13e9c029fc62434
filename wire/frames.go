package wire

import "encoding/binary"

// Kinds of traffic inside one communicator: each has its own matching space.
const (
	KindP2P        uint32 = 0 // the program's point-to-point messages
	KindCollective uint32 = 1 // messages of collectives; the tag is the collective's number and stage
	KindInternal   uint32 = 2 // communicator management
)

// Envelope identifies a message for matching. Body of Eager and RTS frames.
//
//	 0  u64  context   communicator: creator's virtual rank << 32 | the creator's counter
//	 8  i32  tag
//	12  u32  kind
//	16  u64  size      bytes of the whole message
//	24  u64  handle    the sender's request (RTS and synchronous Eager), echoed in CTS, Fin and Matched
type Envelope struct {
	Context uint64
	Tag     int32
	Kind    uint32
	Size    uint64
	Handle  uint64
}

// CTS answers an RTS: send the first Bytes bytes to Receiver.
type CTS struct{ Sender, Receiver, Bytes uint64 }

// Data places a segment at Offset bytes into the receive Receiver.
type Data struct{ Receiver, Offset uint64 }

// Fin tells the sender that its message has arrived whole.
type Fin struct{ Sender uint64 }

// Matched tells the sender of a synchronous eager message that a receive has met it.
type Matched struct{ Sender uint64 }

// Credit raises the limits of payload bytes, counted since the flow began, that src may send to dst:
// Eager payload not yet consumed by a receive, and Data payload not yet landed.
type Credit struct{ Eager, Data uint64 }

// Cancel takes back the RTS of request Sender if no receive has met it yet.
type Cancel struct{ Sender uint64 }

// CancelReply says whether the cancel came in time.
type CancelReply struct {
	Sender uint64
	OK     bool
}

// Body sizes in bytes.
const (
	EnvelopeLen    = 32
	CTSLen         = 24
	DataLen        = 16
	FinLen         = 8
	MatchedLen     = 8
	CreditLen      = 16
	CancelLen      = 8
	CancelReplyLen = 16
)

var le = binary.LittleEndian

// Append adds the body's bytes to b.
func (e *Envelope) Append(b []byte) []byte {
	b = le.AppendUint64(b, e.Context)
	b = le.AppendUint32(b, uint32(e.Tag))
	b = le.AppendUint32(b, e.Kind)
	b = le.AppendUint64(b, e.Size)
	return le.AppendUint64(b, e.Handle)
}

// ParseEnvelope reads an Envelope from the front of b.
func ParseEnvelope(b []byte) (Envelope, error) {
	if len(b) < EnvelopeLen {
		return Envelope{}, ErrShort
	}
	return Envelope{le.Uint64(b), int32(le.Uint32(b[8:])), le.Uint32(b[12:]), le.Uint64(b[16:]), le.Uint64(b[24:])}, nil
}
