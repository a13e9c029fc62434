package verbs

import "fmt"

// immediate is the immediate data of a message. Every message has some: its kind, a value, and its
// number in its direction of the queue pair, from 0. So the receiving end knows that no message is
// missing, repeated or cut. A reliable connection promises that, but not every device keeps the
// promise (docs/howto/infiniband.md, "Soft-RoCE"), and the data of a job are worth the check.
//
//	kind 3 bits · value 16 bits · number 13 bits
type immediate uint32

// These are the kinds of messages.
const (
	ofBytes      = iota // bytes of the stream, in a slot; value: their number modulo 2^16, as for notes
	ofPiece             // a piece, in a block; value: the block's index
	noteExpect          // notes, in a slot: place.go
	noteWithdraw        //
	notePlaced          //
	creditSlots         // no data; value: number of slots that may be used again
	creditBlock         // no data; value: index of the block that may be written to again
)

func makeImmediate(kind int, value int, number uint64) immediate {
	return immediate(uint32(kind)<<29 | uint32(value)&0xffff<<13 | uint32(number)&0x1fff)
}

func (i immediate) kind() int  { return int(i >> 29) }
func (i immediate) value() int { return int(i >> 13 & 0xffff) }

// whole returns an error unless the message has this number, the next one, and this length.
func (i immediate) whole(number uint64, length int) error {
	n := length // that of a piece is in its head
	switch i.kind() {
	case ofBytes, noteExpect, noteWithdraw, notePlaced:
		n = i.value()
	case creditSlots, creditBlock:
		n = 0
	}
	if uint32(i)&0x1fff != uint32(number)&0x1fff || n&0xffff != length&0xffff {
		return fmt.Errorf("message %d of %d bytes came where message %d was due: the device has lost, repeated or truncated a message", uint32(i)&0x1fff, length, number)
	}
	return nil
}
