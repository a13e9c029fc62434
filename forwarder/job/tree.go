package job

import (
	"fmt"
	"slices"

	"github.com/leidenzipper/zipper/internal/wire"
	"github.com/leidenzipper/zipper/vrank"
)

// tree has the networks and forwarders of a job of several hops. It does not change.
type tree struct {
	here     int // here is this forwarder's index in zippers.
	clusters int // clusters is the number of networks that have ranks; these have the lowest indexes.
	// zippers has the forwarders of the job, by index.
	zippers []wire.Zipper
	// routes has the next hop from each forwarder to each network.
	routes *vrank.Routes
}

// newTree returns the networks and forwarders that a Join describes. here is this forwarder's index
// among them.
func newTree(join *wire.Join, here int) (*tree, error) {
	names := make([]string, len(join.Layout), len(join.Layout)+len(join.Networks))
	for i, c := range join.Layout {
		names[i] = c.Name
	}
	names = append(names, join.Networks...)
	on := make([][]int, len(join.Zippers))
	for i, z := range join.Zippers {
		for _, p := range z.Ports {
			on[i] = append(on[i], int(p.Network))
		}
	}
	routes, err := vrank.Tree(names, len(join.Layout), on)
	if err != nil {
		return nil, err
	}
	return &tree{here: here, clusters: len(join.Layout), zippers: join.Zippers, routes: routes}, nil
}

// next returns the index of the forwarder to which forwarder zipper sends frames for a cluster, or
// -1 if it sends them to the ranks itself.
func (t *tree) next(zipper, cluster int) int {
	if n := t.routes.Next(zipper, cluster); len(n) > 0 {
		return n[0] // a tree has one next hop
	}
	return -1
}

// neighbour describes another forwarder that shares a network with this one, so that the two may
// have a link.
type neighbour struct {
	network int    // network is the index of the shared network.
	addr    string // addr is the neighbour's address on that network; empty if it does not listen there.
	mine    string // mine is this forwarder's address on that network.
	dials   bool   // dials says that this forwarder, rather than the neighbour, opens the link.
}

// neighbour describes the forwarder with index k as a neighbour of this one. ok is false if the two
// share no network, or neither can dial the other.
func (t *tree) neighbour(k int) (n neighbour, ok bool) {
	for _, mine := range t.zippers[t.here].Ports {
		for _, p := range t.zippers[k].Ports {
			if p.Network == mine.Network && k != t.here {
				dials, possible := vrank.Dials(t.linkEnd(t.here, mine), t.linkEnd(k, p))
				return neighbour{int(p.Network), p.Address, mine.Address, dials}, possible
			}
		}
	}
	return neighbour{}, false
}

// linkEnd describes the end of a link at port p (address on a network) of the forwarder with index
// k.
func (t *tree) linkEnd(k int, p wire.Port) vrank.LinkEnd {
	ranks := slices.ContainsFunc(t.zippers[k].Ports, func(p wire.Port) bool { return int(p.Network) < t.clusters })
	return vrank.LinkEnd{Zipper: k, Listens: p.Address != "", Ranks: ranks}
}

// name returns a name for users of the forwarder with index k: its address on a network that it
// shares with this one, another of its addresses, or its number.
func (t *tree) name(k int) string {
	if n, ok := t.neighbour(k); ok && n.addr != "" {
		return n.addr
	}
	for _, p := range t.zippers[k].Ports {
		if p.Address != "" {
			return p.Address
		}
	}
	return fmt.Sprintf("number %d", k+1)
}
