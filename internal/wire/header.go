// Package wire defines the frames that travel on a link between a rank and a forwarder, between two
// forwarders, or between two ranks that reach each other. All integers are little endian. A frame
// is a 44-byte header, a body whose size follows from the type, and a payload:
//
//	 0  u8   type
//	 1  u8   flags      FlagSync: the sender of an Eager frame wants a Matched frame; FlagReply: an Echo comes back;
//	                   FlagSealed; FlagAgain: was sent before
//	 2  u16  epoch      Data and Landed: which connection of the flow over this rail, from 1 (a lost one raises it); else 1
//	 4  u32  length     bytes after the header: body + payload, at most MaxLength
//	 8  u32  src        virtual rank that made the frame; Nobody for a forwarder
//	12  u32  dst        virtual rank it is for; Nobody for the forwarder at the other end of the link
//	16  u64  seq        position in the flow src→dst, from 1; of Data its place: bytes
//	                   of payload before it on this rail in this epoch; else 0
//	24  u64  ack        every sequenced frame of the flow dst→src up to this one has been taken
//	32  u32  bodysum    CRC32C of the body; of frames between ranks at level plain: 0, and not looked at
//	36  u32  paysum     the same of the payload
//	40  u32  check      CRC32C of all of the header before it: who reads a header checks it (sum.go)
//
// Eager, RTS, CTS, Matched, Cancel, CancelReply and Fin are sequenced: a receiver handles them
// exactly once and in order, whatever rails they took. Data frames are idempotent (they name a
// place), Credit, Ack and Landed are cumulative, an Echo says when it was sent; these are not
// sequenced.
//
// # Sealed jobs
//
// In a sealed job every frame of a running job has FlagSealed: what follows the header is encrypted
// and SealLen bytes longer, a tag over all, the header included, and the number of the transmission
// (package seal). Nobody on the way changes a header. The body of Data tells only where in a
// message the payload belongs. It is authenticated but not encrypted, so that the payload can be
// encrypted from where the program has it. Frames between ranks are sealed from rank to rank: a
// forwarder sees headers only. Frames between the two ends of a link are sealed with keys of that
// link; on a direct link these are the pair's.
//
// What a seal leaves to show is that a frame which is authentic does no harm when it comes again,
// late, in another place or not at all. For each type:
//
//	sequenced frames (Eager, RTS, CTS, Matched, Cancel, CancelReply, Fin)
//	            the seal covers seq, and each seq is handled once, in order; a transmission
//	            that is repeated is dropped by seq. One left out holds up all that follow, so
//	            that nothing is handled without it
//	Data        the seal covers receiver, offset, place and length: it can land in its own place only,
//	            where each byte is taken once. Handles are not used again soon (pt2pt), so a late
//	            one finds no receive. One left out leaves its receive incomplete
//	Credit, Ack, the ack of every header
//	            totals since the flow began: an older one says less, and the highest counts
//	Echo        says when it was sent: an old one makes a round trip look longer than it is
//	Landed      a total since its epoch began; an older epoch's is ignored
//	Abort       ends the job; besides the link's seal it has the word of the rank that made it,
//	            for this run (Abort.Word): a forwarder can end a job, but not in a rank's name
//	Bye, ByeAck, Ping, Pong, RailState, Ready, Count
//	            belong to one link, whose keys are its own; one that is repeated has a number that
//	            was there before, and one left out the next Count tells of
//
// Besides, the receiver notes the numbers that have come over each rail: what is repeated there is
// not only harmless but noticed.
package wire

import (
	"encoding/binary"
	"errors"
	"fmt"
)

const (
	HeaderLen  = 44      // bytes
	MaxPayload = 1 << 20 // bytes of payload in one frame
	MaxLength  = MaxPayload + 4096
	Nobody     = 1<<32 - 1 // src or dst when it is not a rank
	SealLen    = 24        // bytes by which a sealed frame is longer
)

// Type says what a frame is.
type Type uint8

// Frames between ranks; a forwarder relays them by their destination and never looks inside.
const (
	TypeEager       Type = 1 // Envelope + payload: a whole message
	TypeRTS         Type = 2 // Envelope: a large message waits at the sender (request to send)
	TypeCTS         Type = 3 // CTS: the matching receive is posted (clear to send)
	TypeData        Type = 4 // Data + payload: one segment of a large message
	TypeFin         Type = 5 // Fin: the receiver has the whole large message
	TypeMatched     Type = 6 // Matched: a synchronous eager message met its receive
	TypeCredit      Type = 7 // Credit: how much payload may be on its way
	TypeAck         Type = 8 // header only
	TypeCancel      Type = 9 // Cancel: take back an unmatched RTS
	TypeCancelReply Type = 10
	TypeLanded      Type = 11 // Landed: segments that came over this rail are in place
	TypeEcho        Type = 12 // Echo: how long is the way there and back
)

// Frames between the two ends of one link.
const (
	TypeChallenge  Type = 32 // forwarder → joiner: a nonce
	TypeJoin       Type = 33 // joiner → forwarder: who I am, with proof of the job's secret
	TypeLayout     Type = 34 // forwarder → joiner: the job is complete, this is everybody
	TypeRefuse     Type = 35 // either way: no, and why
	TypeAbort      Type = 36 // any → all: the job ends with this code, and why
	TypeBye        Type = 37 // clean end of a link; the other end answers ByeAck and closes
	TypeByeAck     Type = 38
	TypePing       Type = 39 // with up to MaxPing bytes that say nothing
	TypePong       Type = 40
	TypeBridge     Type = 42 // forwarder → forwarder: let me in as a link of a job with several hops
	TypeReady      Type = 43 // forwarder ↔ forwarder: all ranks have joined, as this forwarder sees it
	TypeMeet       Type = 44 // rank ↔ rank, on a direct link: who I am, with proof of the job's secret
	TypeNotice     Type = 45 // forwarder → joiner that waits, other forwarder: what is missing
	TypeProof      Type = 46 // forwarder → joiner, forwarder that dialled: that it has its host key
	TypeHalf       Type = 47 // launcher → forwarder: how its cluster's half of a job stands
	TypeCount      Type = 48 // either way: how many bytes were sent before it
	TypeJointProof Type = 49 // forwarder → joiner: the same as Proof, by a signature for several
	TypeRailState  Type = 41 // forwarder → rank or forwarder: another rank's link is lost, or is there again
)

// MaxPing is the most bytes of a Ping: enough for packets of full size.
const MaxPing = 8 << 10

// FlagSync marks an Eager frame whose sender waits for the match (MPI_Ssend).
const FlagSync uint8 = 1

// FlagReply marks an Echo that answers one.
const FlagReply uint8 = 2

// FlagAgain marks a frame between ranks that was given to a link before, or whose payload was: for
// counts alone, it changes nothing for the receiver.
const FlagAgain uint8 = 8

// FlagSealed marks a frame that is sealed: its Length counts the seal.
const FlagSealed uint8 = 4

// Header opens every frame.
type Header struct {
	Type     Type
	Flags    uint8
	Epoch    uint16
	Length   uint32
	Src, Dst uint32
	Seq, Ack uint64

	BodySum, PayloadSum uint32
}

// ErrShort reports that more bytes are needed to parse.
var ErrShort = errors.New("wire: short frame")

// Append adds the header's HeaderLen bytes to b.
func (h *Header) Append(b []byte) []byte {
	start := len(b)
	b = h.AppendUnsummed(b)
	le.PutUint32(b[start+checkAt:], Sum(b[start:start+checkAt]))
	return b
}

// AppendUnsummed is Append without the header's own sum, which SumFrame or SumHeader puts in.
func (h *Header) AppendUnsummed(b []byte) []byte {
	b = append(b, byte(h.Type), h.Flags)
	b = binary.LittleEndian.AppendUint16(b, h.Epoch)
	b = binary.LittleEndian.AppendUint32(b, h.Length)
	b = binary.LittleEndian.AppendUint32(b, h.Src)
	b = binary.LittleEndian.AppendUint32(b, h.Dst)
	b = binary.LittleEndian.AppendUint64(b, h.Seq)
	b = binary.LittleEndian.AppendUint64(b, h.Ack)
	b = binary.LittleEndian.AppendUint32(b, h.BodySum)
	b = binary.LittleEndian.AppendUint32(b, h.PayloadSum)
	return append(b, 0, 0, 0, 0)
}

// ParseHeader reads a header from the first HeaderLen bytes of b. The error is ErrShort when b is
// too short, else it says what is wrong with a header no honest peer sends.
func ParseHeader(b []byte) (Header, error) {
	if len(b) < HeaderLen {
		return Header{}, ErrShort
	}
	h := ParsedHeader(b)
	if h.Length > MaxLength {
		return Header{}, fmt.Errorf("wire: frame of %d bytes, at most %d allowed", h.Length, MaxLength)
	}
	if int(h.Type) >= len(lengths) || lengths[h.Type].max == 0 {
		return Header{}, fmt.Errorf("wire: unknown frame type %d", h.Type)
	}
	n := h.Length
	if h.Flags&FlagSealed != 0 {
		if !h.Type.Sealable() || n < SealLen {
			return Header{}, fmt.Errorf("wire: sealed frame of type %v with %d bytes", h.Type, n)
		}
		n -= SealLen
	}
	// One more than the length, so that zero marks the types that do not exist.
	if r := &lengths[h.Type]; n+1 < r.min || n+1 > r.max {
		return Header{}, fmt.Errorf("wire: frame of type %v with %d bytes, want %d to %d", h.Type, n, r.min-1, r.max-1)
	}
	if binary.LittleEndian.Uint32(b[checkAt:]) != Sum(b[:checkAt]) {
		return Header{}, fmt.Errorf("wire: header of %v frame: %w", h.Type, ErrSum)
	}
	return h, nil
}

// ParsedHeader reads a header again that ParseHeader has taken: nothing of it is checked.
func ParsedHeader(b []byte) Header {
	return Header{
		Type: Type(b[0]), Flags: b[1], Epoch: binary.LittleEndian.Uint16(b[2:]),
		Length: binary.LittleEndian.Uint32(b[4:]), Src: binary.LittleEndian.Uint32(b[8:]),
		Dst: binary.LittleEndian.Uint32(b[12:]),
		Seq: binary.LittleEndian.Uint64(b[16:]), Ack: binary.LittleEndian.Uint64(b[24:]),
		BodySum: binary.LittleEndian.Uint32(b[32:]), PayloadSum: binary.LittleEndian.Uint32(b[36:]),
	}
}

// lengths gives for each type the least and most bytes after the header, plus one.
var lengths = [TypeJointProof + 1]struct{ min, max uint32 }{
	TypeEager:       {EnvelopeLen + 1, EnvelopeLen + MaxPayload + 1},
	TypeRTS:         {EnvelopeLen + 1, EnvelopeLen + 1},
	TypeCTS:         {CTSLen + 1, CTSLen + 1},
	TypeData:        {DataLen + 1, DataLen + MaxPayload + 1},
	TypeFin:         {FinLen + 1, FinLen + 1},
	TypeMatched:     {MatchedLen + 1, MatchedLen + 1},
	TypeCredit:      {CreditLen + 1, CreditLen + 1},
	TypeAck:         {1, 1},
	TypeCancel:      {CancelLen + 1, CancelLen + 1},
	TypeCancelReply: {CancelReplyLen + 1, CancelReplyLen + 1},
	TypeLanded:      {LandedLen + 1, LandedLen + 1},
	TypeEcho:        {EchoLen + 1, EchoLen + 1},
	TypeChallenge:   {4 + 1, MaxJoin + 1}, // another version's may be longer
	TypeJoin:        {4 + 1, MaxJoin + 1},
	TypeLayout:      {1, MaxLength + 1},
	TypeRefuse:      {1, 6 + MaxString + 1},
	TypeAbort:       {1, 10 + MaxString + 4 + SealProofLen + 1},
	TypeBye:         {1, 1},
	TypeByeAck:      {1, 1},
	TypePing:        {1, MaxPing + 1},
	TypePong:        {1, 1},
	TypeRailState:   {1, 14 + MaxString + 1},
	TypeBridge:      {4 + 1, MaxJoin + MaxBridge + 1},
	TypeReady:       {4 + 1, 4 + 1},
	TypeMeet:        {MeetLen + 1, MeetLen + 1},
	TypeNotice:      {1, 2 + MaxString + 1},
	TypeProof:       {ProofLen + 1, ProofLen + 1},
	TypeHalf:        {4 + 1, MaxJoin + 1},
	TypeCount:       {CountLen + 1, CountLen + 1},
	TypeJointProof:  {SignatureLen + 4 + 1, SignatureLen + 4 + MaxDepth*NodeLen + 1},
}

// BodyLen returns the size in bytes of the body before the payload, for frames between ranks; 0 for
// others.
func (t Type) BodyLen() int {
	if t.BetweenRanks() {
		return int(lengths[t].min - 1)
	}
	return 0
}

// BetweenRanks reports whether a forwarder relays frames of this type by their destination.
func (t Type) BetweenRanks() bool { return t >= TypeEager && t <= TypeEcho }

// HasPayload reports whether a payload may follow the body.
func (t Type) HasPayload() bool { return t == TypeEager || t == TypeData }

// Payload returns the number of payload bytes in the frame, the seal left out.
func (h *Header) Payload() int {
	if !h.Type.HasPayload() {
		return 0
	}
	return int(h.Length) - h.Type.BodyLen() - h.seal()
}

// Bulk reports whether the frame may take another connection than those that are not, where
// forwarders have several between them: its payload would hold others up.
func (h *Header) Bulk() bool { return h.Type == TypeData || h.Payload() >= BulkFrom }

// Rest returns the number of bytes after the body: payload and seal.
func (h *Header) Rest() int { return h.Payload() + h.seal() }

func (h *Header) seal() int {
	if h.Flags&FlagSealed != 0 {
		return SealLen
	}
	return 0
}

// Sealed is the header of a frame once that is sealed. Sums would tell of what is in it.
func (h Header) Sealed() Header {
	h.Flags |= FlagSealed
	h.Length += SealLen
	h.BodySum, h.PayloadSum = 0, 0
	return h
}

// Opened is the header of a sealed frame as if that had not been sealed.
func (h Header) Opened() Header {
	h.Flags &^= FlagSealed
	h.Length -= SealLen
	return h
}

// Sealable reports whether frames of this type belong to running jobs.
func (t Type) Sealable() bool {
	switch t {
	case TypeAbort, TypeBye, TypeByeAck, TypePing, TypePong, TypeRailState, TypeReady, TypeCount:
		return true
	}
	return t.BetweenRanks()
}

var typeNames = [TypeJointProof + 1]string{
	TypeEager: "Eager", TypeRTS: "RTS", TypeCTS: "CTS", TypeData: "Data", TypeFin: "Fin", TypeMatched: "Matched",
	TypeCredit: "Credit", TypeAck: "Ack", TypeCancel: "Cancel", TypeCancelReply: "CancelReply",
	TypeChallenge: "Challenge",
	TypeJoin:      "Join", TypeLayout: "Layout", TypeRefuse: "Refuse", TypeAbort: "Abort", TypeBye: "Bye",
	TypeByeAck: "ByeAck",
	TypePing:   "Ping", TypePong: "Pong", TypeLanded: "Landed", TypeEcho: "Echo", TypeRailState: "RailState",
	TypeBridge: "Bridge", TypeReady: "Ready", TypeMeet: "Meet", TypeNotice: "Notice", TypeProof: "Proof",
	TypeHalf: "Half", TypeCount: "Count", TypeJointProof: "JointProof",
}

func (t Type) String() string {
	if int(t) < len(typeNames) && typeNames[t] != "" {
		return typeNames[t]
	}
	return fmt.Sprintf("Type(%d)", uint8(t))
}

// Sequenced reports whether frames of this type carry a flow sequence number.
func (t Type) Sequenced() bool {
	switch t {
	case TypeEager, TypeRTS, TypeCTS, TypeFin, TypeMatched, TypeCancel, TypeCancelReply:
		return true
	}
	return false
}
