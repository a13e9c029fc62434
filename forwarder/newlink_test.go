package forwarder

import (
	"testing"

	"github.com/leidenzipper/zipper/internal/transport/memnet"
)

// TestConnectionAfterEndOfJobIsClosed checks that a further connection between forwarders that is
// opened when its job is over is closed; otherwise a forwarder that stopped would end a second
// time.
func TestConnectionAfterEndOfJobIsClosed(t *testing.T) {
	ch := newChain(t, threeInARow, [][]uint16{{0, 1}, {1, 2}})
	f := ch.benches[0].f
	links := ch.joinAll("j")
	r := f.named("j")
	for _, byRank := range links {
		for _, x := range byRank {
			x.bye()
		}
	}
	for _, b := range ch.benches {
		if s := b.ended(); !s.OK {
			t.Errorf("%+v", s)
		}
		b.settled()
	}
	late, _ := memnet.Pipe(memnet.Options{Buffer: 100})
	f.take(late, nil, func(p *peer) { r.dialled(p, 1, 1) })
	ch.benches[0].settled()
	if _, err := late.TryWrite([]byte{1}); err == nil {
		t.Error("it is open")
	}
}
