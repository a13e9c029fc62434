package engine

import (
	"bytes"
	"strings"
	"testing"

	"github.com/leidenzipper/zipper/internal/wire"
)

// TestDamageIsDetected checks that at level checked the destination detects a flipped bit in any
// part of a frame, and that nothing of the frame reaches the program. Headers are checked at every
// level.
func TestDamageIsDetected(t *testing.T) {
	const eager, large = 100, 5000
	for _, c := range []struct {
		name  string
		level wire.Level
		typ   wire.Type
		bit   int // the number of the flipped bit in the frame
		want  string
	}{
		{"length", wire.LevelPlain, wire.TypeEager, 8 * 4, "header of Eager frame: damaged"},
		{"acknowledgement", wire.LevelPlain, wire.TypeCTS, 8 * 24, "header of CTS frame: damaged"},
		{"tag", wire.LevelChecked, wire.TypeEager, 8 * (wire.HeaderLen + 8), "Eager frame: damaged"},
		{"short payload", wire.LevelChecked, wire.TypeEager, 8*(wire.HeaderLen+wire.EnvelopeLen+eager) - 1, "payload from rank 0: damaged"},
		{"request", wire.LevelChecked, wire.TypeCTS, 8 * wire.HeaderLen, "CTS frame: damaged"},
		{"offset", wire.LevelChecked, wire.TypeData, 8 * (wire.HeaderLen + 8), "Data frame: damaged"},
		{"long payload", wire.LevelChecked, wire.TypeData, 8 * (wire.HeaderLen + wire.DataLen + 77), "payload from rank 0: damaged"},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := newFabric(t, []int{1, 1}, Limits{Eager: 1000}, func(_ int, cfg *Config) { cfg.Level = c.level })
			comms := f.world(1)
			flipped := false
			f.edit = func(h *wire.Header, frame []byte) [][]byte {
				if h.Type == c.typ && !flipped {
					flipped = true
					frame = bytes.Clone(frame)
					frame[c.bit/8] ^= 1 << (c.bit % 8)
				}
				return [][]byte{frame}
			}
			in := [2][]byte{make([]byte, eager), make([]byte, large)}
			cells := make([]Cell, 4)
			for i, n := range []int{eager, large} {
				if err := f.engines[0].Isend(comms[0], KindP2P, bytes.Repeat([]byte{7}, n), 1, i, false,
					&cells[i]); err != nil {
					t.Fatal(err)
				}
				if err := f.engines[1].Irecv(comms[1], KindP2P, in[i], 0, i, &cells[2+i]); err != nil {
					t.Fatal(err)
				}
			}
			for range 20 {
				for rank, e := range f.engines {
					e.Progress(0)
					f.relay(rank, 0)
				}
			}
			got := f.natives[0].failed + f.natives[1].failed
			if !flipped || !strings.Contains(got, c.want) {
				t.Fatalf("failed with %q, want %q", got, c.want)
			}
			for i := range in {
				if cell := &cells[2+i]; cell.Done() && cell.Error == 0 &&
					!bytes.Equal(in[i], bytes.Repeat([]byte{7}, len(in[i]))) {
					t.Errorf("the program got wrong bytes in message %d", i)
				}
			}
		})
	}
}
