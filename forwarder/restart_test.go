package forwarder

import (
	"errors"
	"testing"

	"github.com/leidenzipper/zipper/handshake"
	"github.com/leidenzipper/zipper/internal/wire"
)

// TestRestartAmongJobs checks that a forwarder that replaces another one resumes more jobs than may
// gather at once: a refusal of early ones is not final, and they run when they join again.
func TestRestartAmongJobs(t *testing.T) {
	net := tcpNetwork()
	first := start(t, net, nil)
	layout := []wire.Cluster{{Name: "a", Size: 1}, {Name: "b", Size: 1}}
	member := func(job, cluster string) handshake.Identity {
		id := identity(job, cluster, 0, layout...)
		id.Patience = patience.Milliseconds()
		return id
	}
	run := func(b *bench, job string, begin func()) (pair [2]*rank) {
		joined := make(chan *rank)
		join := func(cluster string) {
			r, err := b.dial(member(job, cluster))
			if err != nil {
				t.Error(err)
			}
			joined <- r
		}
		go join("a")
		b.opened(job)
		begin()
		go join("b")
		for range pair {
			if r := <-joined; r != nil {
				pair[r.Rank] = r
			}
		}
		if t.Failed() {
			t.FailNow()
		}
		return pair
	}
	var ranks []*rank
	for _, job := range []string{"j", "k"} {
		pair := run(first, job, func() {})
		ranks = append(ranks, pair[:]...)
	}
	first.f.Release()
	for _, r := range ranks {
		r.expect(wire.TypeBye)
		r.link.Close()
	}
	<-first.over
	second := start(t, net, func(c *Config) { c.MaxGatheringFrom = 1 })
	j := run(second, "j", func() {
		var refused *handshake.Refused
		if _, err := second.dial(member("k", "a")); !errors.As(err, &refused) || refused.Final() {
			t.Errorf("a second job that gathers: %v, want a refusal that is not final", err)
		}
	})
	k := run(second, "k", func() {})
	pingPong(t, j[0], j[1])
	pingPong(t, k[0], k[1])
}
