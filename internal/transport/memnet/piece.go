package memnet

import (
	"errors"
	"io"
	"sync"

	"github.com/leidenzipper/zipper/internal/transport"
)

// maxPiece is the largest size of a piece in bytes.
const maxPiece = 140_000

// PieceLink is a Link that carries large pieces.
type PieceLink struct{ *Link }

var _ transport.Lender = (*PieceLink)(nil)

// MaxPiece implements transport.Lender.
func (l *PieceLink) MaxPiece() int { return maxPiece }

// TryBorrow implements transport.Lender.
func (l *PieceLink) TryBorrow() (transport.Block, error) {
	p := l.in
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.reader:
		return nil, transport.ErrClosed
	case p.failure != nil:
		return nil, p.failure
	case p.here > 0 && !p.arrived[0].piece:
		return nil, nil
	case p.here > 0:
		m := p.arrived[0]
		p.arrived = p.arrived[1:]
		p.here -= len(m.b)
		p.update()
		return &block{p: p, b: m.b}, nil
	case p.eof:
		return nil, io.EOF
	}
	return nil, transport.ErrAgain
}

// TrySend implements transport.Lender.
func (l *PieceLink) TrySend(head, body []byte) error {
	if len(head)+len(body) > maxPiece {
		return errors.New("memnet: piece too long")
	}
	p := l.out
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.writer:
		return transport.ErrClosed
	case p.failure != nil:
		return p.failure
	case p.reader:
		return io.ErrClosedPipe
	case p.pieces == p.places:
		p.starved = true
		p.update()
		return transport.ErrAgain
	}
	p.pieces++
	p.launch(append(append([]byte(nil), head...), body...), true)
	return nil
}

// TryLend implements transport.Lender.
func (l *PieceLink) TryLend(head []byte, b transport.Block, from int) error {
	err := l.TrySend(head, b.Bytes()[from:])
	if err == nil {
		b.Release()
	}
	return err
}

type block struct {
	p    *pipe
	b    []byte
	once sync.Once
}

func (b *block) Bytes() []byte { return b.b }

func (b *block) Scarce() bool {
	b.p.mu.Lock()
	defer b.p.mu.Unlock()
	return 2*b.p.pieces >= b.p.places
}

func (b *block) Release() {
	twice := true
	b.once.Do(func() { twice = false })
	if twice {
		panic("memnet: a block is released twice")
	}
	b.p.mu.Lock()
	defer b.p.mu.Unlock()
	b.p.free()
	b.p.update()
}

// free returns the place of one piece to the pipe. The caller holds mu.
func (p *pipe) free() {
	p.pieces--
	p.starved = false
}
