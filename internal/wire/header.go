// Package wire defines the frames that travel on a link between a rank and a forwarder, between two
// forwarders, or between two ranks that reach each other. All integers are little endian. A frame
// is a 44-byte header, a body whose size follows from the type, and a payload:
//
//	 0  u8   type
//	 1  u8   flags      FlagSync: the sender of an Eager frame wants a Matched frame; FlagReply: an Echo comes back;
//	                   FlagSealed; FlagResent: was sent before
//	 2  u16  epoch      Data and Landed: which connection of the flow over this rail, from 1 (a lost one raises it);
//	                   1 in other frames between ranks, 0 in frames between the ends of a link
//	 4  u32  length     bytes after the header: body + payload, at most MaxLength
//	 8  u32  src        virtual rank that made the frame; Nobody for a forwarder
//	12  u32  dst        virtual rank it is for; Nobody for the forwarder at the other end of the link
//	16  u64  seq        position in the flow src→dst, from 1; of Data its place: bytes
//	                   of payload before it on this rail in this epoch; else 0
//	24  u64  ack        every sequenced frame of the flow dst→src up to this one has been taken
//	32  u32  bodysum    CRC32C of the body; of frames between ranks at level plain: 0, and not checked
//	36  u32  paysum     the same of the payload
//	40  u32  check      CRC32C of the header before it; each reader of a header checks it (sum.go)
//
// Eager, RTS, CTS, Matched, Cancel, CancelReply and Fin are sequenced: a receiver handles them
// exactly once and in order, over any rails. Data frames are idempotent, because they have a
// place. Credit, Ack and Landed are cumulative. An Echo has the time at which it was sent. These
// are not sequenced.
//
// # Sealed jobs
//
// In a sealed job every frame of a running job has FlagSealed: the part after the header is
// encrypted and SealLen bytes longer, for a tag over the whole frame, header included, and the
// number of the transmission (package seal). So no one in between can change a header. The body of
// Data only says where in a message the payload belongs. It is authenticated but not encrypted, so
// that the payload can be encrypted from the program's memory. Frames between ranks are sealed from
// rank to rank: a forwarder sees headers only. Frames between the two ends of a link are sealed
// with keys of that link; on a direct link these are the pair's.
//
// A seal does not prevent that an authentic frame is repeated, delayed, reordered or dropped. This
// does no harm, for the following reasons:
//
//	sequenced frames (Eager, RTS, CTS, Matched, Cancel, CancelReply, Fin)
//	            the seal covers seq, and each seq is handled once, in order; a repeated
//	            transmission is dropped by its seq; a dropped one delays all that follow, so
//	            that nothing is handled without it
//	Data        the seal covers receiver, offset, place and length: a frame can land in its own
//	            place only, where each byte is accepted once. Handles are not reused soon (pt2pt),
//	            so a late frame finds no receive. A dropped one leaves its receive incomplete
//	Credit, Ack, the ack of every header
//	            totals since the flow began: an older one has a lower value, and the highest counts
//	Echo        has the time at which it was sent: an old one makes a round trip look longer
//	Landed      a total since its epoch began; an older epoch's is ignored
//	Abort       ends the job; in addition to the link's seal it has the word of the rank that made it,
//	            for this run (Abort.Word): a forwarder can end a job, but not in a rank's name
//	Bye, ByeAck, Ping, Pong, RailState, Lost, Ready, Count, Offer, Ask, Way, Moved
//	            belong to one link, which has its own keys; a repeated one has a number that
//	            was used before, and the next Count reveals a dropped one
//
// In addition, the receiver keeps the numbers of the frames that have arrived over each rail. So a
// repeated frame is not only harmless but also detected.
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

// Type is the type of a frame.
type Type uint8

// These are frames between ranks. A forwarder relays them by their destination and never looks
// inside.
const (
	TypeEager       Type = 1 // Envelope + payload: a whole message
	TypeRTS         Type = 2 // Envelope: a large message waits at the sender (request to send)
	TypeCTS         Type = 3 // CTS: the matching receive is posted (clear to send)
	TypeData        Type = 4 // Data + payload: one segment of a large message
	TypeFin         Type = 5 // Fin: the receiver has the whole large message
	TypeMatched     Type = 6 // Matched: a receive has matched a synchronous eager message
	TypeCredit      Type = 7 // Credit: limits of the payload in flight
	TypeAck         Type = 8 // header only
	TypeCancel      Type = 9 // Cancel: take back an unmatched RTS
	TypeCancelReply Type = 10
	TypeLanded      Type = 11 // Landed: segments that came over this rail are in place
	TypeEcho        Type = 12 // Echo: measurement of the round trip
)

// These are frames between the two ends of one link.
const (
	TypeChallenge  Type = 32 // forwarder → joiner: a nonce
	TypeJoin       Type = 33 // joiner → forwarder: identity of the joiner, with proof of the job's secret
	TypeLayout     Type = 34 // forwarder → joiner: the job is complete; list of its ranks
	TypeRefuse     Type = 35 // either way: refusal, with the reason
	TypeAbort      Type = 36 // any → all: the job ends with this code, with the reason
	TypeBye        Type = 37 // clean end of a link; the other end answers ByeAck and closes
	TypeByeAck     Type = 38
	TypePing       Type = 39 // with up to MaxPing bytes without meaning
	TypePong       Type = 40
	TypeBridge     Type = 42 // forwarder → forwarder: request for a link of a job with several hops
	TypeReady      Type = 43 // forwarder ↔ forwarder: all ranks have joined, in the view of one forwarder
	TypeMeet       Type = 44 // rank ↔ rank, on a direct link: identity of the rank, with proof of the job's secret
	TypeNotice     Type = 45 // forwarder → joiner that waits, other forwarder: list of missing ranks or links
	TypeProof      Type = 46 // forwarder → joiner, forwarder that dialled: proof of its host key
	TypeHalf       Type = 47 // launcher → forwarder: state of its cluster's half of a job
	TypeCount      Type = 48 // either way: number of bytes sent before it
	TypeJointProof Type = 49 // forwarder → joiner: as Proof, with one signature for several ranks
	TypeRailState  Type = 41 // forwarder → rank or forwarder: another rank's link is lost, or restored
	TypeLost       Type = 50 // any → rank or forwarder: a cluster is lost, and the job goes on
	TypeOffer      Type = 51 // forwarder → rank: it opens ways between ranks on request (way.go)
	TypeAsk        Type = 52 // rank → forwarder: request for a way to another rank
	TypeWay        Type = 53 // forwarder → rank: address at which another rank can be reached
	TypeMoved      Type = 54 // rank → forwarder: amount that was sent over ways
)

// MaxPing is the largest size of a Ping in bytes: enough for packets of full size.
const MaxPing = 8 << 10

// FlagSync marks an Eager frame whose sender waits for the match (MPI_Ssend).
const FlagSync uint8 = 1

// FlagReply marks an Echo that is the answer to another one.
const FlagReply uint8 = 2

// FlagResent marks a frame between ranks that was given to a link before, or whose payload was. It
// is only for statistics: the receiver treats the frame as any other.
const FlagResent uint8 = 8

// FlagSealed marks a frame that is sealed. Its Length includes the seal.
const FlagSealed uint8 = 4

// Header is the header of every frame.
type Header struct {
	Type     Type
	Flags    uint8
	Epoch    uint16
	Length   uint32
	Src, Dst uint32
	Seq, Ack uint64

	BodySum, PayloadSum uint32
}

// ErrShort means that more bytes are needed to parse.
var ErrShort = errors.New("wire: short frame")

// Append appends the HeaderLen bytes of the header to b.
func (h *Header) Append(b []byte) []byte {
	start := len(b)
	b = h.AppendUnsummed(b)
	le.PutUint32(b[start+checkAt:], Sum(b[start:start+checkAt]))
	return b
}

// AppendUnsummed is Append without the header's own sum, which SumFrame or SumHeader sets.
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

// ParseHeader parses a header at the front of b. The error is ErrShort if b has less than HeaderLen
// bytes. Otherwise it describes the defect of a header that no honest peer sends.
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
	// The table has lengths plus one, so that zero marks types that do not exist.
	if r := &lengths[h.Type]; n+1 < r.min || n+1 > r.max {
		return Header{}, fmt.Errorf("wire: frame of type %v with %d bytes, want %d to %d", h.Type, n, r.min-1, r.max-1)
	}
	if binary.LittleEndian.Uint32(b[checkAt:]) != Sum(b[:checkAt]) {
		return Header{}, fmt.Errorf("wire: header of %v frame: %w", h.Type, ErrSum)
	}
	return h, nil
}

// ParsedHeader parses a header that ParseHeader has already accepted. It checks nothing.
func ParsedHeader(b []byte) Header {
	return Header{
		Type: Type(b[0]), Flags: b[1], Epoch: binary.LittleEndian.Uint16(b[2:]),
		Length: binary.LittleEndian.Uint32(b[4:]), Src: binary.LittleEndian.Uint32(b[8:]),
		Dst: binary.LittleEndian.Uint32(b[12:]),
		Seq: binary.LittleEndian.Uint64(b[16:]), Ack: binary.LittleEndian.Uint64(b[24:]),
		BodySum: binary.LittleEndian.Uint32(b[32:]), PayloadSum: binary.LittleEndian.Uint32(b[36:]),
	}
}

// lengths has for each type the smallest and largest number of bytes after the header, plus one.
var lengths = [TypeMoved + 1]struct{ min, max uint32 }{
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
	TypeLost:        {1, 12 + MaxString + 1},
	TypeOffer:       {1, 1},
	TypeAsk:         {AskLen + 1, AskLen + 1},
	TypeWay:         {minWay + 1, minWay + MaxName + 1},
	TypeMoved:       {MovedLen + 1, MovedLen + 1},
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

// Payload returns the number of payload bytes in the frame, without the seal.
func (h *Header) Payload() int {
	if !h.Type.HasPayload() {
		return 0
	}
	return int(h.Length) - h.Type.BodyLen() - h.seal()
}

// Bulk reports whether the frame may take the connections for large frames, where forwarders have
// several between them. Its payload would delay other frames.
func (h *Header) Bulk() bool { return h.Type == TypeData || h.Payload() >= BulkFrom }

// Rest returns the number of bytes after the body: payload and seal.
func (h *Header) Rest() int { return h.Payload() + h.seal() }

func (h *Header) seal() int {
	if h.Flags&FlagSealed != 0 {
		return SealLen
	}
	return 0
}

// Sealed returns the header of the frame after sealing. It has no sums, because they would reveal
// something about the content.
func (h Header) Sealed() Header {
	h.Flags |= FlagSealed
	h.Length += SealLen
	h.BodySum, h.PayloadSum = 0, 0
	return h
}

// Opened returns the header of a sealed frame as it was before sealing, but without the sums.
func (h Header) Opened() Header {
	h.Flags &^= FlagSealed
	h.Length -= SealLen
	return h
}

// Sealable reports whether frames of this type may be sealed: those that belong to running jobs.
func (t Type) Sealable() bool {
	switch t {
	case TypeAbort, TypeBye, TypeByeAck, TypePing, TypePong, TypeRailState, TypeLost, TypeReady, TypeCount,
		TypeOffer, TypeAsk, TypeWay, TypeMoved:
		return true
	}
	return t.BetweenRanks()
}

var typeNames = [TypeMoved + 1]string{
	TypeEager: "Eager", TypeRTS: "RTS", TypeCTS: "CTS", TypeData: "Data", TypeFin: "Fin", TypeMatched: "Matched",
	TypeCredit: "Credit", TypeAck: "Ack", TypeCancel: "Cancel", TypeCancelReply: "CancelReply",
	TypeChallenge: "Challenge",
	TypeJoin:      "Join", TypeLayout: "Layout", TypeRefuse: "Refuse", TypeAbort: "Abort", TypeBye: "Bye",
	TypeByeAck: "ByeAck",
	TypePing:   "Ping", TypePong: "Pong", TypeLanded: "Landed", TypeEcho: "Echo", TypeRailState: "RailState",
	TypeBridge: "Bridge", TypeReady: "Ready", TypeMeet: "Meet", TypeNotice: "Notice", TypeProof: "Proof",
	TypeHalf: "Half", TypeCount: "Count", TypeJointProof: "JointProof", TypeLost: "Lost",
	TypeOffer: "Offer", TypeAsk: "Ask", TypeWay: "Way", TypeMoved: "Moved",
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
