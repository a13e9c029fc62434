package platform

import (
	"math/big"
	"strings"
	"testing"

	"github.com/leidenzipper/zipper/contention/num"
	"github.com/leidenzipper/zipper/contention/sharing"
)

const sites = `
clusters:
  - {name: a, hosts: 2, nic: 1gbit}
  - {name: wan, hosts: [nobody], nic: 1gbit, latency: 20ms, buffer: 1MB, streams: 4}
  - {name: b, hosts: 2, nic: 1gbit}
zippers:
  - {name: z1, ports: {a: 1gbit, wan: 1gbit}}
  - {name: z2, ports: {wan: 1gbit, b: 1gbit}}
`

// TestLong checks that four connections, each with 1 MB in flight, together carry 100 MB/s over a
// round trip of 40 ms. A message takes one round trip more for its handshake, and half of one for
// its bytes.
func TestLong(t *testing.T) {
	rule := sharing.MaxMin[num.Rat]{}
	m := Message{From: "a1", To: "b1", Bytes: mb(100)}
	with := func(old, now string) string { return strings.Replace(sites, old, now, 1) }
	for _, c := range []struct {
		what, platform string
		want           float64
	}{
		{"four connections", sites, 1.06},
		{"one", with("streams: 4", "streams: 1"), 4.06},
		{"as many as forwarders have", with(", streams: 4", ""), 1.06},
		{"the adapters are slower", with("streams: 4", "streams: 16"), 0.8 + 0.06},
		{"buffers without an end", with(", buffer: 1MB, streams: 4", ""), 0.8 + 0.06},
		{"it does not ask", with("{name: z1,", "{name: z1, eager: 100MB,"), 1.02},
		{"a pair's window", strings.NewReplacer("1gbit", "100gbit", "20ms", "200ms", ", buffer: 1MB", "").Replace(sites),
			100e6/(48<<20)*0.4 + 0.6},
	} {
		near(t, c.what, finish(t, parse(t, c.platform), rule, m)[0], c.want)
	}
	two := Message{From: "a2", To: "b2", Bytes: mb(100)}
	for _, f := range finish(t, parse(t, sites), rule, m, two) {
		near(t, "two pairs share the connections", f, 2.06)
	}
	for _, bad := range []string{with("latency: 20ms, ", ""), with("buffer: 1MB", "buffer: 0"),
		with("streams: 4", "streams: 17")} {
		if _, err := Read(strings.NewReader(bad)); err == nil {
			t.Errorf("accepted:\n%s", bad)
		}
	}
}

// TestSealed checks that the cores that encrypt and decrypt bound the rate of a host, for both
// directions together, and that messages inside a cluster do not count.
func TestSealed(t *testing.T) {
	p := parse(t, strings.Replace(lab, "hosts: 4\n", "hosts: 4\n    seal: 500 MB/s\n", 1))
	rule := sharing.MaxMin[num.Rat]{}
	out := Message{From: "a1", To: "h1", Bytes: mb(1000)}
	near(t, "one", finish(t, p, rule, out)[0], 1)
	back := Message{From: "h1", To: "a1", Bytes: mb(1000)}
	for _, f := range finish(t, p, rule, out, back) {
		near(t, "both ways", f, 2)
	}
	inside := Message{From: "a1", To: "a2", Bytes: mb(1000)}
	plain := finish(t, parse(t, lab), rule, inside)[0]
	near(t, "inside", finish(t, p, rule, inside)[0], plain)
}

// TestTranslated checks that each pair has its own connection where the zipper's kernel translates
// addresses, and that the forwarder does not slow it down.
func TestTranslated(t *testing.T) {
	const nat = `
clusters:
  - {name: a, hosts: 3, nic: 1gbit}
  - {name: b, hosts: 3, nic: 1gbit}
zippers:
  - {name: z, ports: {a: 10gbit, b: 1gbit}, relay: nat}
`
	streams := sharing.Streams[num.Rat]{}
	m := func(from, to string) Message { return Message{From: from, To: to, Bytes: mb(125)} }
	list := []Message{m("a1", "b1"), m("a2", "b1"), m("b2", "b1")}
	for _, f := range finish(t, parse(t, nat), streams, list...) {
		near(t, "three connections into a host", f, 3)
	}
	relayed := strings.Replace(nat, ", relay: nat", "", 1)
	got := finish(t, parse(t, relayed), streams, list...) // two of them share the zipper's connection
	near(t, "relayed", got[0], 3)
	near(t, "from inside", got[2], 2)
	if _, err := Read(strings.NewReader(strings.Replace(nat, "relay: nat", "relay: nat, forwarder: {copy: 1 GB/s}", 1))); err == nil {
		t.Error("a forwarder that has nothing to do was accepted")
	}
	g, err := Build[num.Rat](parse(t, nat), []Message{{From: "a1", To: "b1", Bytes: big.NewRat(1, 1)}})
	if err != nil || len(g.Network.Flows[0].Hops) != 1 {
		t.Errorf("%v, %d connections", err, len(g.Network.Flows[0].Hops))
	}
}
