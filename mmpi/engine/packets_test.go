package engine

import (
	"bytes"
	"fmt"
	"slices"
	"testing"

	"github.com/leidenzipper/zipper/internal/wire"
)

// packetLink is a memLink whose system sends packets of a known size.
type packetLink struct {
	*memLink
	packet int
}

func (l packetLink) Packet() int { return l.packet }

// TestSegmentsFillPackets checks that segments and their heads fill packets, and that a few last
// bytes join the segment before them.
func TestSegmentsFillPackets(t *testing.T) {
	const head = wire.HeaderLen + wire.DataLen
	for _, c := range []struct {
		packet, message int
		want            []int
	}{
		{0, 2500, []int{1000, 1000, 500}},
		{head, 2500, []int{1000, 1000, 500}},
		{1000 + head, 2500, []int{1000, 1000, 500}},
		{1001 + head, 2500, []int{1000, 1000, 500}},
		{500, 3000 - 3*head, []int{1000 - head, 1000 - head, 1000 - head}},
		{400, 2000, []int{800 - head, 800 - head, 400 + 2*head}},
		{400, 2*(800-head) + 90, []int{800 - head, 800 - head + 90}},
		{400, 900, []int{800 - head, 100 + head}},
	} {
		t.Run(fmt.Sprint(c.packet, " ", c.message), func(t *testing.T) {
			f := newFabric(t, []int{1, 1}, Limits{Eager: 300, EagerWindow: 20000, DataWindow: 10000, Segment: 1000},
				func(rank int, cfg *Config) {
					if rank == 0 {
						cfg.Links[0] = packetLink{cfg.Links[0].(*memLink), c.packet}
					}
				})
			var lengths []int
			f.edit = func(h *wire.Header, frame []byte) [][]byte {
				if h.Type == wire.TypeData {
					lengths = append(lengths, h.Payload())
				}
				return [][]byte{frame}
			}
			comms := f.world(1)
			sent, got := make([]byte, c.message), make([]byte, c.message)
			for i := range sent {
				sent[i] = byte(i % 251)
			}
			var out, in Cell
			if err := f.engines[1].Irecv(comms[1], KindP2P, got, 0, 0, &in); err != nil {
				t.Fatal(err)
			}
			if err := f.engines[0].Isend(comms[0], KindP2P, sent, 1, 0, false, &out); err != nil {
				t.Fatal(err)
			}
			f.settle()
			if !in.Done() || !out.Done() || !bytes.Equal(got, sent) {
				t.Error("the message is not there, or changed")
			}
			if !slices.Equal(lengths, c.want) {
				t.Errorf("segments of %v bytes, want %v", lengths, c.want)
			}
		})
	}
}
