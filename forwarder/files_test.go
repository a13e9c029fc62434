package forwarder

import (
	"errors"
	"strings"
	"testing"

	"github.com/leidenzipper/zipper/forwarder/job"
	"github.com/leidenzipper/zipper/handshake"
	"github.com/leidenzipper/zipper/internal/wire"
)

// TestFiles checks that a job with more ranks than this process may have links is refused with its
// first Join, with the setting to change, rather than rank by rank once no descriptors are left.
func TestFiles(t *testing.T) {
	b := start(t, tcpNetwork(), func(c *Config) { c.files = 3 })
	_, err := b.dial(identity("wide", "a", 0, wire.Cluster{Name: "a", Size: 2}, wire.Cluster{Name: "b", Size: 2}))
	var refused *handshake.Refused
	if !errors.As(err, &refused) || refused.Code != wire.RefuseLayout ||
		!strings.Contains(refused.Reason, "ulimit -n 84 or more") {
		t.Errorf("%v", err)
	}
	for _, r := range b.join("fits", wire.Cluster{Name: "a", Size: 2}, wire.Cluster{Name: "b", Size: 1}) {
		r.bye()
	}
	b.ended()
	b.settled()
}

// TestLinksOf checks that in a job of several hops only the ranks on its own networks have links to
// a forwarder.
func TestLinksOf(t *testing.T) {
	j := wire.Join{Layout: []wire.Cluster{{Name: "a", Size: 2}, {Name: "b", Size: 3}, {Name: "c", Size: 5}}}
	if n := job.LinksOf(&j, 0); n != 10 {
		t.Errorf("one hop: %d", n)
	}
	j.Networks = []string{"between"}
	j.Zippers = []wire.Zipper{{Ports: []wire.Port{{Network: 0}, {Network: 3}}}, {Ports: []wire.Port{{Network: 3}}},
		{Ports: []wire.Port{{Network: 3}, {Network: 1}, {Network: 2}}}}
	for here, want := range []int{2, 0, 8} {
		if n := job.LinksOf(&j, here); n != want {
			t.Errorf("forwarder %d: %d, want %d", here, n, want)
		}
	}
}
