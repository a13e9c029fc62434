package rma

import (
	"encoding/binary"
	"fmt"
)

// Verb is the kind of a message. Messages from one process to another are handled in the order of
// sending.
type Verb uint8

// These are the verbs. The first ones go from an origin to a target:
const (
	Put        Verb = 1 // write data to memory
	Get        Verb = 2 // read memory; the answer is a reply
	Accumulate Verb = 3 // memory = memory func data
	Fetch      Verb = 4 // like Accumulate; the answer is a reply with the old value
	Swap       Verb = 5 // data has the new value and the compare value, one element each; the answer is a reply
	lock       Verb = 6 // the answer is an ack when the lock is granted; func 1 is exclusive
	unlock     Verb = 7 // the answer is an ack
	flush      Verb = 8 // the answer is an ack
	complete   Verb = 9 // the origin's access epoch (MPI_Win_complete) is over; the answer is an ack
	// These go from a target to an origin:
	post  Verb = 16 // the target's exposure epoch has begun
	ack   Verb = 17
	reply Verb = 18 // it has data
)

// These are functions of accumulates without arithmetic. All others have the arithmetic's own
// numbers.
const (
	Replace uint8 = 1
	NoOp    uint8 = 2
)

// These are sizes in bytes. A message is short enough to be sent without a handshake.
const (
	headLen    = 32
	runLen     = 24
	maxRuns    = 512
	maxData    = 48 << 10 // it is a multiple of all element sizes, so elements are not split
	MaxMessage = headLen + maxRuns*runLen + maxData
)

var le = binary.LittleEndian

// message has this form, in little endian:
//
//	 0  u8   verb
//	 1  u8   func    accumulates, lock
//	 2  u8   kind    of the elements, the arithmetic's number; for Put and Get only if Recode needs it
//	 3  u8   0
//	 4  u32  runs
//	 8  u64  id      of the answer
//	16  i64  disp    in displacement units of the target; an address if the window is dynamic
//	24  u64  want    bytes of data in the answer to a Get
//
// It is followed by the runs (i64 off, u32 len, u32 count, i64 stride) and the data.
type message struct {
	verb       Verb
	fn, kind   uint8
	id         uint64
	disp, want int64
	runs       []Run
	data       []byte
}

func (m *message) appendHead(b []byte) []byte {
	b = append(b, byte(m.verb), m.fn, m.kind, 0)
	b = le.AppendUint32(b, uint32(len(m.runs)))
	b = le.AppendUint64(b, m.id)
	b = le.AppendUint64(b, uint64(m.disp))
	b = le.AppendUint64(b, uint64(m.want))
	for _, r := range m.runs {
		b = le.AppendUint64(b, uint64(r.Off))
		b = le.AppendUint32(b, r.Len)
		b = le.AppendUint32(b, r.Count)
		b = le.AppendUint64(b, uint64(r.Stride))
	}
	return b
}

// parse parses a message. Its data refers to b; its runs are in memory of the caller.
func parse(b []byte, runs []Run) (m message, err error) {
	if len(b) < headLen {
		return m, fmt.Errorf("rma: message of %d bytes", len(b))
	}
	m = message{verb: Verb(b[0]), fn: b[1], kind: b[2], id: le.Uint64(b[8:]), disp: int64(le.Uint64(b[16:])),
		want: int64(le.Uint64(b[24:]))}
	n := le.Uint32(b[4:])
	if n > maxRuns || len(b) < headLen+int(n)*runLen {
		return m, fmt.Errorf("rma: message of %d bytes with %d runs", len(b), n)
	}
	if b = b[headLen:]; m.want < 0 || m.want > maxData {
		return m, fmt.Errorf("rma: the message asks for %d bytes at once", m.want)
	}
	m.runs = runs[:0]
	var size uint64
	for range n {
		r := Run{int64(le.Uint64(b)), le.Uint32(b[8:]), le.Uint32(b[12:]), int64(le.Uint64(b[16:]))}
		if r.Len == 0 {
			return m, fmt.Errorf("rma: a run of %d empty elements", r.Count)
		}
		if size += uint64(r.Len) * uint64(r.Count); size > maxData {
			return m, fmt.Errorf("rma: runs of more than %d bytes in one message", maxData)
		}
		m.runs = append(m.runs, r)
		b = b[runLen:]
	}
	m.data = b
	want := size
	switch m.verb {
	case Get:
		if size != uint64(m.want) {
			return m, fmt.Errorf("rma: runs of %d bytes for %d", size, m.want)
		}
		want = 0
	case Swap:
		want *= 2
	case Fetch:
		if m.fn == NoOp {
			want = 0
		}
	case reply:
		want = uint64(len(b))
	}
	if uint64(len(b)) != want {
		return m, fmt.Errorf("rma: %d bytes of data, want %d", len(b), want)
	}
	return m, nil
}
