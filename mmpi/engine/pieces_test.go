package engine

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/leidenzipper/zipper/internal/transport"
)

// pieceLink is a memLink with places for large pieces, which the test hands out.
type pieceLink struct {
	*memLink
	places, sent int
}

func (l *pieceLink) MaxPiece() int                              { return 1200 }
func (l *pieceLink) TryBorrow() (transport.Block, error)        { return nil, nil }
func (l *pieceLink) TryLend([]byte, transport.Block, int) error { return transport.ErrAgain }

func (l *pieceLink) TrySend(head, body []byte) error {
	if l.places == 0 {
		return transport.ErrAgain
	}
	l.places--
	l.sent++
	*l.out = append(append(*l.out, head...), body...)
	return nil
}

// TryWrite writes only a part of bufs.
func (l *pieceLink) TryWrite(bufs ...[]byte) (int, error) {
	b := bytes.Join(bufs, nil)
	return l.memLink.TryWrite(b[:(len(b)+1)/2])
}

// TestSegmentsGoOutAsPieces checks that segments go out as pieces, one place at a time; that the
// frames written between them, in parts, stay whole; that frames overtake a segment that waits for
// a place; and that a segment too long for a piece goes as bytes.
func TestSegmentsGoOutAsPieces(t *testing.T) {
	for _, segment := range []int{1000, 1300} {
		t.Run(fmt.Sprint(segment), func(t *testing.T) {
			var l *pieceLink
			f := newFabric(t, []int{1, 1}, Limits{Eager: 500, EagerWindow: 20000, DataWindow: 10000, Segment: segment},
				func(rank int, cfg *Config) {
					if rank == 0 {
						l = &pieceLink{memLink: cfg.Links[0].(*memLink)}
						cfg.Links[0] = l
					}
				})
			c := f.world(1)
			const large, small = 8, 20
			got := make([][]byte, large+small)
			cells := make([]Cell, len(got))
			sent := make([]Cell, len(got))
			for i := range got {
				n := 400
				if i < large {
					n = 5500
				}
				got[i] = make([]byte, n)
				want := bytes.Repeat([]byte{byte(i + 1)}, n)
				if err := f.engines[1].Irecv(c[1], KindP2P, got[i], 0, i, &cells[i]); err != nil {
					t.Fatal(err)
				}
				if err := f.engines[0].Isend(c[0], KindP2P, want, 1, i, false, &sent[i]); err != nil {
					t.Fatal(err)
				}
			}
			f.settle()
			if segment < l.MaxPiece() {
				for i := range got {
					if cells[i].Done() != (i >= large) {
						t.Errorf("without a place for pieces: message %d of %d bytes done: %v", i, len(got[i]),
							cells[i].Done())
					}
				}
			}
			for range 100 {
				l.places = 1
				f.settle()
			}
			for i := range got {
				if !cells[i].Done() || !sent[i].Done() || !bytes.Equal(got[i],
					bytes.Repeat([]byte{byte(i + 1)}, len(got[i]))) {
					t.Fatalf("message %d is not there, or changed", i)
				}
			}
			want := 0 // only last segments fit
			if segment < l.MaxPiece() {
				want = large * 6
			} else if 5500%segment != 0 {
				want = large
			}
			if l.sent != want {
				t.Errorf("%d pieces, want %d", l.sent, want)
			}
		})
	}
}
