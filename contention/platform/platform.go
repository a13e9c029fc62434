// Package platform reads the platform file (hosts, networks and zippers with
// their capacities) and makes the resource graph of the messages on it.
//
// The file is YAML with comments, meant to be edited; docs/howto/predicting.md shows
// one. Unknown fields, capacities that are not positive and routes with cycles
// are errors that name the line.
package platform

import (
	"errors"
	"io"
	"reflect"

	"go.yaml.in/yaml/v3"
)

// Cluster is a network of hosts.
type Cluster struct {
	Name  string
	Hosts Hosts
	Cores int     // ranks per host; default 1
	Speed float64 // of computing, relative to the other clusters; default 1
	NIC   Duplex
	// Backbone, if given, is what the cluster's network carries to (out) and
	// from (in) its zippers in all.
	Backbone *Duplex
	// Memory, if given, is the rate of messages between ranks of one host; they
	// take no time otherwise.
	Memory  Rate
	Latency Time // of a message within the cluster
	// Buffer, if given, is the bytes that a connection over the network may have on its way: with
	// the latency it bounds the rate.
	Buffer Size
	// Streams is how many connections between two zippers over the network large messages have;
	// default 4 over a long path, else 1.
	Streams int
	Seal    Rate // if given, messages to other clusters are sealed: what one core seals or opens
	// Lone is the rate of a lone transfer, 1/alpha of the penalty rule; default
	// is what the adapter sends.
	Lone      Rate
	RuleB     string    `yaml:"rule_b"` // U (default), R or off
	Processor Processor // of a host, for simulation
	line      int
}

// Forwarder is the work of a zipper: a copy rate, or threads that receive and
// then send blockingly. Without either it costs nothing.
type Forwarder struct {
	Copy    Rate
	Half    bool // one copy rate for both directions
	Threads int
	// CopyTime is the seconds per byte a thread spends besides receiving and
	// sending.
	CopyTime Time `yaml:"copy_time"`
	// OneWay gives each direction its own threads.
	OneWay bool `yaml:"one_way"`
}

// Memory is a zipper's memory bus.
type Memory struct {
	Bandwidth Rate
	// Crossings per relayed byte: 2 for receiving and sending in place, 4 with
	// one more copy. Default 2.
	Crossings int
}

// Relay is how a message passes a zipper.
type Relay string

const (
	CutThrough      Relay = "cut-through"       // default
	StoreAndForward Relay = "store-and-forward" // the whole message, then on
	Segmented       Relay = "segmented"         // cut-through that first fills a segment
	// Translated: the zipper's kernel translates addresses (--nat), so hosts have a connection from
	// end to end, which no forwarder relays. Rule penalty counts them in the second network only.
	Translated Relay = "nat"
)

// Zipper is a host on two or more networks.
type Zipper struct {
	Name      string
	Cores     int // ranks it can hold besides forwarding; default 0
	Ports     map[string]Duplex
	Forwarder Forwarder
	Memory    *Memory
	Relay     Relay
	Segment   Size // of Segmented; default 1 MiB
	Window    Size // bytes of a pair of hosts that may be on the way, queued here; default 4 MiB. For sharing buffered
	// bytes of a connection to or from it that nothing overtakes: in the socket, on the way;
	// default 0. For sharing buffered
	Socket    Size
	Handshake Time      // before a message's first byte
	Eager     Size      // of the longest message that goes without a handshake; default: none does
	Latency   Time      // that it adds to those of the clusters, or:
	Through   Time      // from cluster to cluster, of a small message, in place of all these
	Processor Processor // for simulation
	line      int
}

// Processor is what the processors of a host take for what they do. The solver does not know it,
// simulations do.
type Processor struct {
	Cores   int  // default: those for ranks, and on a zipper node one
	Switch  Time // until a thread that is waked does something
	Call    Time // reading or writing once
	Byte    Time // each byte that is read or written
	Message Time // sending or receiving a message, by MPI
}

// Network is how adapters pass bytes, for simulation.
type Network struct {
	Packet Size // default 9000
	Burst  Size // that a limited link lets pass at once after a pause; default: none
}

// Machine is given where all hosts and zippers are one machine, as in a lab of namespaces, for
// simulation.
type Machine struct {
	Cores int // that they share; default: each has its own
	// What these take for a packet that crosses a link, and for each of its bytes, beside the calls
	// of sender and receiver: links are the machine's work, too.
	Packet, Byte Time
}

// Route names the zippers between two clusters that have several ways; by
// default the way with the fewest zippers is taken.
type Route struct {
	From, To string
	Via      []string
	line     int
}

// Rails says how messages use several zippers side by side.
type Rails struct {
	// Policy is spread (default: each pair of hosts uses one, by turns), equal
	// (a message is cut into equal stripes) or proportional (stripes in
	// proportion to the rates the zippers would give it).
	Policy string
	// Min is the smallest message that is cut; default 0.
	Min Size
}

// Platform is the whole file.
type Platform struct {
	Name     string
	Sharing  string // max-min (default), streams, buffered, zhu, zhu-paper or penalty
	Clusters []Cluster
	Zippers  []Zipper
	Routes   []Route
	Rails    Rails
	Network  Network
	Machine  Machine

	hosts map[string]place
}

// place is a host or zipper: index of its cluster (-1 for a zipper) and within
// it.
type place struct{ cluster, index int }

func (c *Cluster) UnmarshalYAML(n *yaml.Node) error {
	type plain Cluster
	c.line = n.Line
	return n.Decode((*plain)(c))
}

func (z *Zipper) UnmarshalYAML(n *yaml.Node) error {
	type plain Zipper
	z.line = n.Line
	return n.Decode((*plain)(z))
}

func (r *Route) UnmarshalYAML(n *yaml.Node) error {
	type plain Route
	r.line = n.Line
	return n.Decode((*plain)(r))
}

// Read reads and checks a platform file.
func Read(r io.Reader) (*Platform, error) {
	b, err := io.ReadAll(io.LimitReader(r, 16<<20))
	if err != nil {
		return nil, err
	}
	if err := errForeign(b); err != nil {
		return nil, err
	}
	var n yaml.Node
	if err := yaml.Unmarshal(b, &n); err != nil {
		return nil, err
	}
	if len(n.Content) == 0 {
		return nil, errors.New("the platform file is empty")
	}
	p := new(Platform)
	if err := known(n.Content[0], reflect.TypeOf(p)); err != nil {
		return nil, err
	}
	if err := n.Decode(p); err != nil {
		return nil, err
	}
	line := func(field string) int { // of one of the file
		for i := 0; i+1 < len(n.Content[0].Content); i += 2 {
			if n.Content[0].Content[i].Value == field {
				return n.Content[0].Content[i+1].Line
			}
		}
		return n.Line
	}
	if err := p.check(line); err != nil {
		return nil, err
	}
	return p, nil
}

func (p *Platform) cluster(name string) int {
	for i := range p.Clusters {
		if p.Clusters[i].Name == name {
			return i
		}
	}
	return -1
}

// HasHost tells whether a host or zipper of this name exists.
func (p *Platform) HasHost(name string) bool { _, ok := p.hosts[name]; return ok }

// ClusterOf is the index of the cluster of a host, -1 for a zipper or an
// unknown name.
func (p *Platform) ClusterOf(host string) int {
	if at, ok := p.hosts[host]; ok {
		return at.cluster
	}
	return -1
}

// Places are the hosts of ranks 0, 1, ...: clusters in order, hosts in order,
// each as often as it has cores.
func (p *Platform) Places() []string {
	var list []string
	for _, c := range p.Clusters {
		for _, h := range c.Hosts.Names {
			for range c.Cores {
				list = append(list, h)
			}
		}
	}
	return list
}
