// Package ethernet builds the networks of Zhu et al. 2013: racks of nodes, each
// node with one full-duplex NIC, the racks joined by a backbone. Share the
// result with sharing.Zhu.
//
// With-flow and contra-flow sets of the paper are the users of a resource and
// of its twin. Only transfers that really leave their rack use the backbone
// port of the rack. The paper has two racks, for which the port of the sending
// rack suffices; here the port of the receiving rack counts too, which is the
// same set of transfers for two racks and needed for more.
package ethernet

import (
	"fmt"

	"github.com/leidenzipper/zipper/contention/num"
	"github.com/leidenzipper/zipper/contention/sharing"
)

// Link is one transfer, with a name, from one node to another.
type Link struct{ Name, From, To string }

// Build creates the network of transfers over two-level Ethernet. rack returns the rack of a node.
// nic and backbone are the capacities of one direction of an adapter and of a rack's link to the
// other racks, in bytes per second (the measured ones of the paper: 940 Mbit/s NICs and copper,
// 9400 Mbit/s optical). Flow i of the network is links[i].
func Build[T num.Number[T]](links []Link, rack func(node string) string, nic, backbone T) (*sharing.Network[T], error) {
	b := builder[T]{index: make(map[string]int)}
	one := num.Int[T](1)
	flows := make([]sharing.Flow[T], len(links))
	for i, l := range links {
		if l.From == l.To {
			return nil, fmt.Errorf("link %s goes from %s to itself", l.Name, l.From)
		}
		f := sharing.Flow[T]{Name: l.Name}
		use := func(r int) { f.Uses = append(f.Uses, sharing.Use[T]{Resource: r, Weight: one}) }
		from, to := rack(l.From), rack(l.To)
		if from != to {
			use(b.out("rack "+from, sharing.Backbone, backbone))
		}
		use(b.out(l.From, sharing.NIC, nic))
		use(b.out(l.To, sharing.NIC, nic) + 1)
		if from != to {
			use(b.out("rack "+to, sharing.Backbone, backbone) + 1)
		}
		flows[i] = f
	}
	return sharing.New(b.resources, flows)
}

type builder[T num.Number[T]] struct {
	resources []sharing.Resource[T] // resources of the network so far
	// index has the index in resources of the sending side of each port, by name of the port.
	index map[string]int
}

// out returns the index of the resource for the sending side of the port with a name, and creates
// it if needed with a kind and a capacity in bytes/s. The next index is the receiving side.
func (b *builder[T]) out(name string, kind sharing.Kind, capacity T) int {
	i, ok := b.index[name]
	if !ok {
		i = len(b.resources)
		b.index[name] = i
		b.resources = append(b.resources,
			sharing.Resource[T]{Name: name + ".out", Kind: kind, Capacity: capacity, Twin: i + 1, Asymmetric: true},
			sharing.Resource[T]{Name: name + ".in", Kind: kind, Capacity: capacity, Twin: i, Asymmetric: true})
	}
	return i
}
