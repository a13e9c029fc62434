package link

import (
	"fmt"

	"github.com/leidenzipper/zipper/internal/wire"
)

// arrival is a frame whose payload is arriving, and what is done once it is there.
type arrival struct {
	typ   wire.Type
	peer  *Peer
	n     int     // bytes of payload
	upper Payload // is called; nil: nothing is
	ahead []byte  // a complete frame that is to be kept until its turn
	seq   uint64  // sequence number; of Data: its place in the lane

	// Data alone:
	lane   int // over which the segment arrives, as an index of Peer.lanes
	epoch  uint16
	offset int64
	sink   *Sink // nil: the receive is over, and the segment only counts as arrived
}

// typeSealed is the type of an arrival of a whole frame that is still sealed.
const typeSealed wire.Type = 255

func (a *arrival) some() bool { return a.typ != 0 }

// overlaps reports whether the arrival writes to the n bytes of a Sink from offset on.
func (a *arrival) overlaps(k *Sink, offset int64, n int) bool {
	return a.sink == k && a.offset < offset+int64(n) && offset < a.offset+int64(a.n)
}

// input is what has been read from a link and not handled.
type input struct {
	buf  []byte
	r, w int // unread bytes are buf[r:w]

	busy bool    // A payload is arriving.
	all  []byte  // its destination
	dst  []byte  // the part of that which has not been filled
	skip int     // bytes after that which are discarded
	sum  uint32  // checksum of the discarded bytes, after that of the destination
	want uint32  // checksum that the sender gives
	lax  bool    // The checksum is not verified.
	room []byte  // at level sealed: has a frame that is longer than buf
	op   arrival // what is done when the payload is there
	bulk bool    // Segments are arriving.

	read uint64 // bytes that have arrived over the link
	at   uint64 // how many of these were before the frame at hand
}

// reset begins with a new link.
func (in *input) reset() { *in = input{buf: in.buf} }

// ready allocates the buffer.
func (in *input) ready() {
	if in.buf == nil {
		in.buf = make([]byte, inputSize)
	}
}

// filled counts n bytes that have arrived.
func (in *input) filled(n int) { in.read += uint64(n) }

// begun returns where the frame begins that has arrived in part, in bytes of the link; without one
// it returns how many have arrived.
func (in *input) begun() uint64 {
	if in.busy {
		return in.at
	}
	return in.read - uint64(in.w-in.r)
}

// expect begins a payload of n bytes that goes to dst, and what does not fit nowhere.
func (in *input) expect(dst []byte, n int, op arrival) {
	in.busy, in.all, in.dst, in.skip, in.op = true, dst, dst, n-len(dst), op
	in.sum = 0
}

// checks sets the checksum of the payload that begins; lax: it is not verified.
func (in *input) checks(sum uint32, lax bool) { in.want, in.lax = sum, lax }

// done ends the payload that was arriving, and returns what is done with it.
func (in *input) done() arrival {
	op := in.op
	in.busy, in.all, in.dst, in.op = false, nil, nil, arrival{}
	return op
}

// delivers reports whether the payload that arrives is that of the frame whose turn it is from a
// peer.
func (in *input) delivers(p *Peer) bool {
	return in.busy && in.op.peer == p && in.op.typ.Sequenced() && in.op.ahead == nil
}

// discard has the rest of the payload discarded that is arriving. Nothing is done when it is there.
func (in *input) discard() {
	in.toScratch()
	in.op = arrival{}
}

// detach has the rest of a segment discarded, because its bytes have arrived already. It still
// counts as arrived.
func (in *input) detach() {
	in.op.sink = nil
	in.toScratch()
}

func (in *input) toScratch() {
	in.skip += len(in.dst)
	in.all, in.dst, in.lax = nil, nil, true
}

// begin returns the bytes that have not been handled, of which a frame begins with the first.
func (in *input) begin() []byte {
	b := in.buf[in.r:in.w]
	in.at = in.read - uint64(len(b))
	return b
}

// use takes n bytes of the frame of a type at hand.
func (in *input) use(n int, t wire.Type) {
	in.r += n
	in.bulk = t == wire.TypeData
}

// partOf notes that the frame at hand, of which only a part has been read, is of a type.
func (in *input) partOf(t wire.Type) { in.bulk = in.bulk && t == wire.TypeData }

// aside has a whole sealed frame read into memory of its own. b has the first part of it. It
// returns how many bytes that is.
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

// wants reports whether more of the payload must be read from the link.
func (in *input) wants() bool { return len(in.dst) > 0 || in.skip > 0 }

// rest returns where the next bytes of the payload go: to its destination, or to the empty buffer
// if they are discarded.
func (in *input) rest() []byte {
	if len(in.dst) > 0 {
		return in.dst
	}
	in.r, in.w = 0, 0
	return in.buf[:min(in.skip, len(in.buf))]
}

// took counts n bytes that were read to rest.
func (in *input) took(n int) {
	if len(in.dst) > 0 {
		in.dst = in.dst[n:]
	} else {
		in.w = n
	}
}

// space returns the room in the buffer for the head of the next frame. While segments arrive it
// ends at want bytes, so that their payload is read to its place.
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

// buffered counts n bytes that were read to space.
func (in *input) buffered(n int) { in.w += n }

// copyBuffered takes what the buffer has of the payload.
func (in *input) copyBuffered() {
	if in.r == in.w {
		return
	}
	k := copy(in.dst, in.buf[in.r:in.w])
	in.dst = in.dst[k:]
	in.r += k
	k = min(in.skip, in.w-in.r)
	in.throw(in.buf[in.r : in.r+k])
	in.r += k
}

// throw discards bytes; those of the destination came before them.
func (in *input) throw(b []byte) {
	if len(b) > 0 && !in.lax {
		if in.all != nil {
			in.sum, in.all = wire.Sum(in.all), nil
		}
		in.sum = wire.SumMore(in.sum, b)
	}
	in.skip -= len(b)
}

// verify checks a complete payload where it is, so that it includes what another rail may have
// written over it meanwhile.
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

// receives names the message that is being read into the program's memory; "" if the memory is our
// own.
func (in *input) receives() string {
	if in.op.sink != nil {
		return in.op.sink.Owner.String()
	}
	if owner, ok := in.op.upper.(fmt.Stringer); ok && in.busy {
		return owner.String()
	}
	return ""
}
