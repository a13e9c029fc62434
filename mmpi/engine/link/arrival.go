package link

import (
	"fmt"

	"github.com/leidenzipper/zipper/internal/wire"
)

// arrival is a frame whose payload is being received, with the parts of its header that are needed
// once the payload is complete.
type arrival struct {
	typ   wire.Type // type of the frame; 0: the arrival stands for no frame
	peer  *Peer     // sender of the frame
	n     int       // length of the payload in bytes
	upper Payload   // called when the payload is complete; nil: nothing is called
	ahead []byte    // copy of the whole frame, kept until its turn; nil: the frame is not kept
	seq   uint64    // sequence number of the frame; for Data, the segment's place in its lane

	lane   int    // Data only: index in Peer.lanes of the lane over which the segment arrives
	epoch  uint16 // Data only: epoch of the lane's connection in which the segment was sent
	offset int64  // Data only: offset of the payload in the message, in bytes
	sink   *Sink  // Data only: the receive to fill; nil: the payload is discarded, but acknowledged, as a duplicate
}

// typeSealed is the type of an arrival whose payload is a whole frame that is still sealed.
const typeSealed wire.Type = 255

// some reports whether the arrival stands for a frame; the zero arrival does not.
func (a *arrival) some() bool { return a.typ != 0 }

// isDuplicate reports whether the frame is a segment whose payload is discarded. Its checksum may
// be wrong, although nothing has damaged the segment: the receiver has all bytes, so the sending
// program may have changed its buffer while pages of the buffer were still on the way (splicer).
func (a *arrival) isDuplicate() bool { return a.typ == wire.TypeData && a.sink == nil }

// overlaps reports whether the payload of the frame goes to any of the n bytes at offset in the
// buffer of Sink k.
func (a *arrival) overlaps(k *Sink, offset int64, n int) bool {
	return a.sink == k && a.offset < offset+int64(n) && offset < a.offset+int64(a.n)
}

// input is the receiving side of a rail's link: the bytes that were read and not handled, and the
// payload that is being received.
type input struct {
	buf []byte // buffer of inputSize bytes for bytes read from the link; nil: not allocated yet
	r   int    // index in buf of the first byte that has not been handled
	w   int    // index in buf after the last byte that was read

	busy bool   // A payload is being received.
	all  []byte // whole destination of the payload; nil: there is none, or its checksum is in sum
	dst  []byte // part of the destination that has not been filled
	skip int    // number of payload bytes after dst that are still to be discarded
	sum  uint32 // checksum of the destination and of the bytes discarded so far; 0 before the first one
	want uint32 // checksum of the payload in the frame's header
	// The payload's checksum is not verified: the level requires none, the payload is sealed, or
	// the receiver no longer needs the rest of it (toScratch).
	lax  bool
	room []byte  // at level sealed: buffer for a frame that is longer than buf, or a segment
	op   arrival // frame whose payload is being received, handled once that is complete
	bulk bool    // The last frame was a segment, so the next head is read without the payload after it.

	frames uint64 // number of frames from ranks that have arrived over the current link

	read uint64 // number of bytes that have arrived over the current link
	at   uint64 // position of the current frame's first byte in the bytes of the link
}

// reset clears the state of reading for a new link. The buffer is kept.
func (in *input) reset() { *in = input{buf: in.buf} }

// ready allocates the buffer for bytes from the link if there is none yet.
func (in *input) ready() {
	if in.buf == nil {
		in.buf = make([]byte, inputSize)
	}
}

// release clears the state of reading, and frees the buffer, because no link may follow.
func (in *input) release() { *in = input{} }

// filled counts n more bytes as arrived over the link.
func (in *input) filled(n int) { in.read += uint64(n) }

// begun returns the position, in bytes since the link came up, at which the incomplete frame
// begins. Without an incomplete frame it returns the number of bytes that have arrived.
func (in *input) begun() uint64 {
	if in.busy {
		return in.at
	}
	return in.read - uint64(in.w-in.r)
}

// expect begins to receive a payload of n bytes for the frame op. The first len(dst) bytes go to
// dst; the rest is discarded.
func (in *input) expect(dst []byte, n int, op arrival) {
	in.busy, in.all, in.dst, in.skip, in.op = true, dst, dst, n-len(dst), op
	in.sum = 0
}

// checks records sum, the sender's checksum of the payload that is being received. If lax is true,
// the checksum is not verified.
func (in *input) checks(sum uint32, lax bool) { in.want, in.lax = sum, lax }

// done ends the receipt of a payload, and returns the frame that it belongs to.
func (in *input) done() arrival {
	op := in.op
	in.busy, in.all, in.dst, in.op = false, nil, nil, arrival{}
	return op
}

// delivers reports whether the payload that is being received belongs to the sequenced frame that
// is next in order from peer p, and goes to its destination. A payload that is read into memory of
// its own, ahead of its turn, does not count.
func (in *input) delivers(p *Peer) bool {
	return in.busy && in.op.peer == p && in.op.typ.Sequenced() && in.op.ahead == nil
}

// discard drops the frame whose payload is being received: the rest of the payload is read and
// discarded, and nothing happens once it is complete.
func (in *input) discard() {
	in.toScratch()
	in.op = arrival{}
}

// detach has the rest of a segment's payload discarded, because the bytes have already arrived over
// another rail. The segment still counts as arrived.
func (in *input) detach() {
	in.op.sink = nil
	in.toScratch()
}

// toScratch has the rest of the payload discarded in place of being written to its destination, and
// its checksum not verified.
func (in *input) toScratch() {
	in.skip += len(in.dst)
	in.all, in.dst, in.lax = nil, nil, true
}

// begin returns the bytes in the buffer that have not been handled, which begin with the head of a
// frame, and records the position of that frame.
func (in *input) begin() []byte {
	b := in.buf[in.r:in.w]
	in.at = in.read - uint64(len(b))
	return b
}

// use removes the first n bytes in the buffer, which have been handled. They belong to a frame of
// type t.
func (in *input) use(n int, t wire.Type) {
	in.r += n
	in.bulk = t == wire.TypeData
	if t.BetweenRanks() {
		in.frames++
	}
}

// partOf notes that the buffer ends with an incomplete frame of type t. Unless that is a segment,
// the next read may take more bytes than the head of one frame.
func (in *input) partOf(t wire.Type) { in.bulk = in.bulk && t == wire.TypeData }

// aside begins to receive a sealed frame, whole bytes long, into memory of its own in place of the
// buffer. It copies b, the first part of the frame, there and returns the length of b.
func (in *input) aside(b []byte, whole int) int {
	if cap(in.room) < whole {
		in.room = make([]byte, whole)
	}
	in.room = in.room[:whole]
	n := copy(in.room, b)
	in.expect(in.room[n:], whole-n, arrival{typ: typeSealed})
	in.lax = true
	return n
}

// wants reports whether a payload is being received and bytes of it must still be read from the
// link.
func (in *input) wants() bool { return len(in.dst) > 0 || in.skip > 0 }

// rest returns the memory for the next bytes of the payload: the rest of the destination, or the
// empty buffer for bytes that are discarded.
func (in *input) rest() []byte {
	if len(in.dst) > 0 {
		return in.dst
	}
	in.r, in.w = 0, 0
	return in.buf[:min(in.skip, len(in.buf))]
}

// took counts n bytes that were read into the memory returned by rest.
func (in *input) took(n int) {
	if len(in.dst) > 0 {
		in.dst = in.dst[n:]
	} else {
		in.w = n
	}
}

// space returns the part of the buffer for the head of the next frame. While segments arrive it
// ends at want bytes, so that the payload after the head is read straight to its destination.
func (in *input) space(want int) []byte {
	if in.r > 0 {
		copy(in.buf, in.buf[in.r:in.w])
		in.r, in.w = 0, in.w-in.r
	}
	if in.bulk && in.w < want {
		return in.buf[in.w:want]
	}
	return in.buf[in.w:]
}

// buffered counts n bytes that were read into the memory returned by space.
func (in *input) buffered(n int) { in.w += n }

// copyBuffered moves payload bytes from the buffer to the destination, and discards those beyond
// the destination.
func (in *input) copyBuffered() {
	if in.r == in.w {
		return
	}
	k := copy(in.dst, in.buf[in.r:in.w])
	in.dst = in.dst[k:]
	in.r += k
	k = min(in.skip, in.w-in.r)
	in.skipBytes(in.buf[in.r : in.r+k])
	in.r += k
}

// skipBytes discards b, the next payload bytes beyond the destination: it adds them to the
// checksum, and subtracts them from the bytes still to be discarded.
func (in *input) skipBytes(b []byte) {
	if len(b) > 0 && !in.lax {
		if in.all != nil {
			in.sum, in.all = wire.Sum(in.all), nil
		}
		in.sum = wire.SumMore(in.sum, b)
	}
	in.skip -= len(b)
}

// verify compares the checksum of the complete payload with the sender's, and returns an error that
// names the sender if they differ. It reads the payload at its destination, so that bytes which
// another rail has written over it are detected.
func (in *input) verify() error {
	if in.lax {
		return nil
	}
	sum := in.sum
	if in.all != nil {
		sum = wire.Sum(in.all)
	}
	if sum == in.want {
		return nil
	}
	from := "another rank"
	if in.op.peer != nil {
		from = fmt.Sprintf("rank %d", in.op.peer.Rank)
	}
	return fmt.Errorf("payload from %s: %w", from, wire.ErrSum)
}

// receives returns the name of the message that is being read into the program's memory, or "" if
// the memory is the engine's own.
func (in *input) receives() string {
	if in.op.sink != nil {
		return in.op.sink.Owner.String()
	}
	if owner, ok := in.op.upper.(fmt.Stringer); ok && in.busy {
		return owner.String()
	}
	return ""
}
