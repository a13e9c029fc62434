package forwarder

import (
	"testing"

	"github.com/leidenzipper/zipper/transport/memnet"
)

// A further connection between forwarders that is there when its job is over is closed, and not
// kept: a forwarder that stopped then ended a second time.
func TestConnectionTooLate(t *testing.T) {
	ch := newChain(t, threeInARow, [][]uint16{{0, 1}, {1, 2}})
	f := ch.benches[0].f
	links := ch.joinAll("j")
	f.mu.Lock()
	br := f.jobs.named("j").hops.bridges[1]
	f.mu.Unlock()
	for _, byRank := range links {
		for _, r := range byRank {
			r.bye()
		}
	}
	for _, b := range ch.benches {
		if s := b.ended(); !s.OK {
			t.Errorf("%+v", s)
		}
		b.settled()
	}
	late, _ := memnet.Pipe(memnet.Options{Buffer: 100})
	f.take(late, func(p *peer) bool { return br.expect(p, 1) }, nil)
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.peers) > 0 || len(br.trunk.coming) > 0 {
		t.Errorf("%d links, %d to come", len(f.peers), len(br.trunk.coming))
	}
	if _, err := late.TryWrite([]byte{1}); err == nil {
		t.Error("it is open")
	}
}
