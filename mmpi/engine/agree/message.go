package agree

import (
	"encoding/binary"
	"fmt"
)

// Kind is the kind of a message.
type Kind uint8

// These are the kinds.
const (
	// Vote is a member's vote for its leader, or a cluster's for the coordinator.
	Vote Kind = 1 + iota
	// Ask asks a leader for the decision, which it may have from a coordinator that is lost.
	Ask
	// Decision is the coordinator's decision for leaders, and a leader's for its members.
	Decision
)

// Message is a message of an agreement.
//
//	 0  u8      kind
//	 1  u8      shrink   1 if the result is a new communicator
//	 2  u32     number   of the agreement on its communicator, from 0
//	 6  u32     flag     value, or bitwise AND of values
//	10  u32     done     number of agreements, from the first on, of which the sender has the decision; in a
//	                     Decision: of which all clusters have it
//	14  u64     context  of the communicator
//	22  u64     fresh    context of the new communicator, in a Decision of a shrink; else 0
//	30  u64[4]  lost     set of clusters that are lost in the sender's view
//	62  u64[4]  acked    set of clusters whose loss is acknowledged
type Message struct {
	Kind   Kind
	Number uint32
	// Context is the context of the communicator.
	Context uint64
	Ballot
}

// Ballot is a vote, or the sum of votes.
type Ballot struct {
	Shrink bool   // whether the result is a new communicator
	Flag   uint32 // value, or bitwise AND of values
	Done   uint32 // smallest number of agreements, from the first on, of which a voter has the decision
	Fresh  uint64 // context of the new communicator, once it is decided
	Lost   Set    // clusters that are lost in the view of a voter
	Acked  Set    // clusters whose loss all voters have acknowledged
}

// MessageLen is the size of a message in bytes.
const MessageLen = 94

// Append appends the encoded message to b and returns the extended slice.
func (m *Message) Append(b []byte) []byte {
	shrink := byte(0)
	if m.Shrink {
		shrink = 1
	}
	le := binary.LittleEndian
	b = append(b, byte(m.Kind), shrink)
	b = le.AppendUint32(b, m.Number)
	b = le.AppendUint32(b, m.Flag)
	b = le.AppendUint32(b, m.Done)
	b = le.AppendUint64(b, m.Context)
	b = le.AppendUint64(b, m.Fresh)
	for _, s := range [...]Set{m.Lost, m.Acked} {
		for _, w := range s {
			b = le.AppendUint64(b, w)
		}
	}
	return b
}

// Parse parses a message that fills b.
func Parse(b []byte) (m Message, err error) {
	if len(b) != MessageLen || b[0] < byte(Vote) || b[0] > byte(Decision) || b[1] > 1 {
		return m, fmt.Errorf("agree: no message of an agreement: %d bytes", len(b))
	}
	le := binary.LittleEndian
	m.Kind, m.Shrink = Kind(b[0]), b[1] == 1
	m.Number, m.Flag, m.Done = le.Uint32(b[2:]), le.Uint32(b[6:]), le.Uint32(b[10:])
	m.Context, m.Fresh = le.Uint64(b[14:]), le.Uint64(b[22:])
	for i := range m.Lost {
		m.Lost[i], m.Acked[i] = le.Uint64(b[30+8*i:]), le.Uint64(b[62+8*i:])
	}
	return m, nil
}

// join adds the vote of another voter.
func (b *Ballot) join(o Ballot) {
	b.Shrink = b.Shrink || o.Shrink
	b.Flag &= o.Flag
	b.Done = min(b.Done, o.Done)
	b.Lost, b.Acked = b.Lost.With(o.Lost), b.Acked.And(o.Acked)
}
