package verbs

import "fmt"

// immediate is the immediate data of a message. Every message has some: what it is, a value, and
// its number in its direction of the queue pair, from 0. So the end that it comes to knows that
// none is missing, has come twice or is cut. A reliable connection promises that, but not every
// device keeps it (docs/howto/infiniband.md, "Soft-RoCE"), and bytes that a job computes with are
// worth the look.
//
//	kind 3 bits · value 16 bits · number 13 bits
type immediate uint32

// Kinds of messages.
const (
	ofBytes      = iota // of the stream, in a slot; value: how many, modulo 2^16, as of notes
	ofPiece             // a piece, in a block; value: which
	noteExpect          // notes, in a slot: place.go
	noteWithdraw        //
	notePlaced          //
	creditSlots         // nothing; value: how many slots may be used again
	creditBlock         // nothing; value: which block may be written to again
)

func makeImmediate(kind int, value int, number uint64) immediate {
	return immediate(uint32(kind)<<29 | uint32(value)&0xffff<<13 | uint32(number)&0x1fff)
}

func (i immediate) kind() int  { return int(i >> 29) }
func (i immediate) value() int { return int(i >> 13 & 0xffff) }

// whole is an error unless this belongs to the message with this number and length, the next that
// is due.
func (i immediate) whole(number uint64, length int) error {
	n := length // of a piece it is in the head
	switch i.kind() {
	case ofBytes, noteExpect, noteWithdraw, notePlaced:
		n = i.value()
	case creditSlots, creditBlock:
		n = 0
	}
	if uint32(i)&0x1fff != uint32(number)&0x1fff || n&0xffff != length&0xffff {
		return fmt.Errorf("message %d of %d bytes came where message %d was due: the device has lost, repeated or cut what was sent", uint32(i)&0x1fff, length, number)
	}
	return nil
}
