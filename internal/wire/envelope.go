package wire

// These are the kinds of traffic inside one communicator. Each has its own matching space.
const (
	KindP2P        uint32 = 0 // the program's point-to-point messages
	KindCollective uint32 = 1 // messages of collectives; the tag is the collective's number and stage
	KindInternal   uint32 = 2 // communicator management
)

// EnvelopeLen is the size of an Envelope in bytes.
const EnvelopeLen = 32

// Envelope identifies a message for matching. It is the body of Eager and RTS frames.
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

// Append appends the encoded body of the frame to b and returns the extended slice.
func (e *Envelope) Append(b []byte) []byte {
	b = le.AppendUint64(b, e.Context)
	b = le.AppendUint32(b, uint32(e.Tag))
	b = le.AppendUint32(b, e.Kind)
	b = le.AppendUint64(b, e.Size)
	return le.AppendUint64(b, e.Handle)
}

// ParseEnvelope parses an Envelope at the front of b. An Eager frame's payload may follow it.
func ParseEnvelope(b []byte) (Envelope, error) {
	if len(b) < EnvelopeLen {
		return Envelope{}, ErrShort
	}
	return Envelope{le.Uint64(b), int32(le.Uint32(b[8:])), le.Uint32(b[12:]), le.Uint64(b[16:]), le.Uint64(b[24:])}, nil
}
