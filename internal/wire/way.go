package wire

import (
	"errors"
	"math"
)

// WaysSince is the first version of the protocol in which a forwarder opens ways on request. A way
// is an address at which the forwarder's kernel passes connections on to a rank.
//
//	forwarder → rank  Offer        after the Layout: the forwarder opens ways for this rank
//	rank → forwarder  Ask{rank}    this pair exchanges much; the frame may be repeated
//	rank → forwarder  Moved{…}     the amount that this rank has sent over such ways so far
//	forwarder → rank  Way{rank, …} for the rank of the pair that dials: the address of the other one
//
// A forwarder that cannot open a way, or need not, answers nothing.
const WaysSince = 13

// AskLen is the size of an Ask in bytes.
const AskLen = 4

// Ask asks the forwarder for a way between the sender and another rank.
//
//	0  u32  rank  virtual
type Ask struct{ Rank uint32 }

// Append appends the encoded body of the frame to b and returns the extended slice.
func (a *Ask) Append(b []byte) []byte { return le.AppendUint32(b, a.Rank) }

// ParseAsk parses an Ask that fills b.
func ParseAsk(b []byte) (Ask, error) {
	r := reader{b: b}
	a := Ask{r.u32()}
	return a, r.end()
}

// minWay is the smallest size of a Way in bytes, without the address.
const minWay = 4 + 8 + 2

// Way tells a rank where it can connect to another one for a short time.
//
//	0   u32     rank      virtual rank at the other end
//	4   u64     instance  of that rank, as in its Join
//	12  string  address   IP address and port, at most MaxName bytes
type Way struct {
	Rank     uint32
	Instance uint64
	Address  string
}

// Append appends the encoded body of the frame to b and returns the extended slice.
func (w *Way) Append(b []byte) []byte {
	return appendString(le.AppendUint64(le.AppendUint32(b, w.Rank), w.Instance), w.Address)
}

// ParseWay parses a Way that fills b.
func ParseWay(b []byte) (Way, error) {
	r := reader{b: b}
	w := Way{r.u32(), r.u64(), r.name()}
	if err := r.end(); err != nil {
		return Way{}, err
	}
	if w.Address == "" {
		return Way{}, errors.New("wire: way without an address")
	}
	return w, nil
}

// MovedLen is the size of a Moved in bytes.
const MovedLen = 16

// Moved reports how much the sender has sent to other ranks over ways so far, which no forwarder
// can count. It is only for statistics.
//
//	0  u64  messages
//	8  u64  bytes     of payload
type Moved struct{ Messages, Bytes uint64 }

// Plus returns the sum of two amounts, or the largest number for a sum that is larger.
func (m Moved) Plus(more Moved) Moved {
	return Moved{Messages: saturated(m.Messages, more.Messages), Bytes: saturated(m.Bytes, more.Bytes)}
}

// saturated returns a + b, or the largest number if the sum is larger.
func saturated(a, b uint64) uint64 {
	if sum := a + b; sum >= a {
		return sum
	}
	return math.MaxUint64
}

// Append appends the encoded body of the frame to b and returns the extended slice.
func (m *Moved) Append(b []byte) []byte {
	return le.AppendUint64(le.AppendUint64(b, m.Messages), m.Bytes)
}

// ParseMoved parses a Moved that fills b.
func ParseMoved(b []byte) (Moved, error) {
	r := reader{b: b}
	m := Moved{r.u64(), r.u64()}
	return m, r.end()
}
