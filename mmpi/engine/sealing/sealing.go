// Package sealing seals and opens a process's frames: those to and from other processes with the
// keys of the pair, those between the two ends of a link with the link's. It has no I/O. Values may
// be used by one goroutine at a time.
package sealing

import (
	"errors"
	"fmt"

	"github.com/leidenzipper/zipper/internal/seal"
	"github.com/leidenzipper/zipper/internal/transport"
	"github.com/leidenzipper/zipper/internal/wire"
)

var _ [wire.SealLen]byte = [seal.Overhead]byte{}
var _ [wire.SealProofLen]byte = [seal.ProofLen]byte{}

// ErrPlain means that a frame of a sealed job is not sealed.
var ErrPlain = errors.New("it is not sealed, as its job is")

// Keys has the keys of a process in a sealed job.
type Keys struct {
	Party   *seal.Party    // this process's keys
	Members []wire.SealKey // by virtual rank
	// Channel returns the channel that joining has made for a link to a forwarder, or nil.
	Channel func(transport.Link) *seal.Channel
}

// member returns the public data of a rank below len(Members).
func (k *Keys) member(rank int) *seal.Member {
	m := &k.Members[rank]
	return &seal.Member{Rank: uint32(rank), Instance: m.Instance, Public: m.Key, Proof: m.Proof}
}

// Sign adds this process's authentication to an Abort.
func (k *Keys) Sign(a *wire.Abort) {
	a.By = k.Party.Rank
	a.Word = k.Party.Job().Word(a.By, k.Party.Instance, a.AppendUnsigned(nil))
}

// VerifyAbort reports whether an Abort was made by the rank that it names.
func (k *Keys) VerifyAbort(a *wire.Abort) bool {
	if int64(a.By) >= int64(len(k.Members)) {
		return false
	}
	return k.Party.Job().VerifyWord(a.By, k.Members[a.By].Instance, a.AppendUnsigned(nil), a.Word)
}

// Pair has the keys of the frames between this process and another one.
type Pair struct {
	out  *seal.Sealer
	in   *seal.Opener
	seen [][2]seal.Window // numbers of arrived frames by rail and class
	head [wire.HeaderLen + wire.DataLen]byte
}

// Pair makes the keys of this process and another rank below len(Members), whose frames may arrive
// over the given number of rails. It takes some time.
func (k *Keys) Pair(rank, rails int) (*Pair, error) {
	s, o, err := k.Party.Pair(k.member(rank))
	if err != nil {
		return nil, fmt.Errorf("rank %d: %w", rank, err)
	}
	return &Pair{out: s, in: o, seen: make([][2]seal.Window, rails)}, nil
}

// class returns the class of a frame: a forwarder may send those of one class over other
// connections than the rest.
func class(h *wire.Header) seal.Class {
	if h.Bulk() {
		return seal.Bulk
	}
	return seal.Small
}

// inClear returns the number of bytes of a frame that are authenticated and not encrypted.
func inClear(t wire.Type) int {
	if t == wire.TypeData {
		return wire.HeaderLen + wire.DataLen
	}
	return wire.HeaderLen
}

// SealData appends a sealed Data frame to out. It encrypts the payload from its own place. h is the
// header of the frame before sealing.
func (p *Pair) SealData(out []byte, h wire.Header, body *wire.Data, payload []byte) ([]byte, error) {
	h = h.Sealed()
	return p.out.Seal(out, body.Append(h.Append(p.head[:0])), payload, seal.Bulk)
}

// Seal appends a sealed frame to out.
func (p *Pair) Seal(out, frame []byte) ([]byte, error) {
	h, err := wire.ParseHeader(frame)
	if err != nil {
		return out, err
	}
	n := inClear(h.Type)
	h = h.Sealed()
	h.Append(p.head[:0])
	copy(p.head[wire.HeaderLen:n], frame[wire.HeaderLen:])
	return p.out.Seal(out, p.head[:n], frame[n:], class(&h))
}

// Open opens a whole frame with header h, which arrived over a rail, in place. It returns the
// header of the frame before sealing, and its body and payload.
func (p *Pair) Open(h wire.Header, frame []byte, rail int) (wire.Header, []byte, error) {
	c := class(&h)
	n := inClear(h.Type)
	if len(frame) < n {
		return h, nil, seal.ErrForged
	}
	plain, err := p.in.Open(frame, n, c, &p.seen[rail][c])
	if err != nil {
		return h, nil, err
	}
	return h.Opened(), frame[wire.HeaderLen : n+len(plain)], nil
}

// Link has the keys of the frames between the two ends of a link to a forwarder. The zero value has
// no keys.
type Link struct {
	channel    *seal.Channel
	sealedSeen bool // a sealed frame has arrived
}

// Link returns the keys of a new link.
func (k *Keys) Link(l transport.Link) Link { return Link{channel: k.Channel(l)} }

// Seal appends a sealed frame to out.
func (l *Link) Seal(out, frame []byte) ([]byte, error) {
	h, err := wire.ParseHeader(frame)
	if err == nil && l.channel == nil {
		err = errors.New("a link of a sealed job has no keys")
	}
	if err != nil {
		return out, err
	}
	h = h.Sealed()
	return l.channel.Seal(out, h.Append(nil), frame[wire.HeaderLen:])
}

// Open opens a whole frame with header h in place.
func (l *Link) Open(h wire.Header, frame []byte) (wire.Header, []byte, error) {
	if l.channel == nil {
		return h, nil, errors.New("a link of a sealed job has no keys")
	}
	plain, err := l.channel.Open(frame, wire.HeaderLen)
	l.sealedSeen = l.sealedSeen || err == nil
	return h.Opened(), plain, err
}

// AllowsPlain reports whether a frame need not be sealed: the forwarder may have sent a Ping or
// Pong before it knew that the job is complete.
func (l *Link) AllowsPlain(t wire.Type) bool {
	return !l.sealedSeen && (t == wire.TypePing || t == wire.TypePong)
}
