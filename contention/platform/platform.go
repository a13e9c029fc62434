// Package platform reads the platform file (hosts, networks and zippers with their capacities) and
// creates the resource graph of the messages on it.
//
// The file is YAML with comments, meant to be edited; docs/howto/predicting.md shows one. Unknown
// fields, capacities that are not positive and routes with cycles are errors that name the line.
package platform

import (
	"errors"
	"io"
	"reflect"

	"go.yaml.in/yaml/v3"
)

// Cluster is a network of hosts.
type Cluster struct {
	Name  string  // name of the cluster
	Hosts Hosts   // names of the hosts
	Cores int     // ranks per host; default 1
	Speed float64 // computing speed relative to the other clusters; default 1
	NIC   Duplex  // adapter of each host
	// Backbone, if given, is the total capacity from the cluster's network to its zippers (out) and
	// from them (in).
	Backbone *Duplex
	// Memory, if given, is the rate of messages between ranks of one host. Otherwise these messages
	// take no time.
	Memory  Rate
	Latency Time // latency of a small message within the cluster, in seconds
	// Buffer, if given, is the number of bytes that a connection over the network may have in
	// flight. It bounds the rate of a connection to Buffer per round trip, which is twice the
	// Latency.
	Buffer Size
	// Streams is the number of connections for large messages between two zippers over the network.
	// The default is 4 over a long path, and 1 otherwise.
	Streams int
	// Seal, if given, is the rate at which one core encrypts or decrypts. Messages to other
	// clusters are then encrypted.
	Seal Rate
	// Lone is the rate of a transfer without others, 1/alpha of the penalty rule. The default is
	// the rate at which the adapter sends.
	Lone Rate
	// RuleB is the condition of rule (b) of the penalty model (penalty.Reading): U (default), R
	// or off.
	RuleB     string    `yaml:"rule_b"`
	Processor Processor // costs of a host's processors, for simulation
	line      int
}

// Forwarder is the work that a zipper does: a copy rate, or threads that receive and then send in
// blocking calls. Without either it costs nothing.
type Forwarder struct {
	Copy Rate // rate at which it copies relayed bytes; none if they are not copied
	Half bool // whether one copy rate applies to both directions together
	// Threads is the number of threads that receive and then send in blocking calls; 0 if it does
	// not work in this way.
	Threads int
	// CopyTime is the time that a thread spends apart from receiving and sending, in seconds per
	// byte.
	CopyTime Time `yaml:"copy_time"`
	// OneWay gives each direction its own threads.
	OneWay bool `yaml:"one_way"`
}

// Memory is a zipper's memory bus.
type Memory struct {
	Bandwidth Rate // number of bytes that pass the bus in a second
	// Crossings is the number of times that a relayed byte crosses the bus: 2 for receiving and
	// sending in place (default), 4 with one more copy.
	Crossings int
}

// Relay is the way in which a message passes a zipper.
type Relay string

const (
	CutThrough Relay = "cut-through" // bytes are sent on as they arrive; the default
	// The whole message is received before it is sent on.
	StoreAndForward Relay = "store-and-forward"
	Segmented       Relay = "segmented" // whole segments are sent on as they arrive
	// Translated means that the zipper's kernel translates addresses (--nat), so hosts have a
	// connection from end to end, and no forwarder relays it. The penalty rule counts such
	// connections in the second network only.
	Translated Relay = "nat"
)

// Zipper is a host on two or more networks.
type Zipper struct {
	Name      string            // name of the zipper
	Cores     int               // ranks that it can run apart from forwarding; default 0
	Ports     map[string]Duplex // adapters by name of the cluster on whose network they are
	Forwarder Forwarder         // cost of relaying bytes
	Memory    *Memory           // limit of the memory bus; nil if it does not matter
	// Relay is the way in which messages pass, such as cut-through or store and forward.
	Relay   Relay
	Segment Size // segment size of relay segmented; default 1 MiB
	// Window is the number of bytes of a pair of hosts that may be in flight, queued here; default
	// 4 MiB. Only sharing rule buffered uses it.
	Window Size
	// Socket is the number of bytes of a connection to or from the zipper that nothing overtakes:
	// those in a socket and in flight; default 0. Only sharing rule buffered uses it.
	Socket    Size
	Handshake Time // delay before the first byte of a message, in seconds
	// Eager is the size in bytes of the longest message that is sent without a handshake; by
	// default all messages have one.
	Eager   Size
	Latency Time // latency in seconds that the zipper adds to those of the clusters
	// Through is the latency of a small message from cluster to cluster. It replaces Latency and
	// those of the clusters.
	Through   Time
	Processor Processor // costs of the node's processors, for simulation
	line      int
}

// Processor has the costs of operations on a host's processors. Simulations use them; the solver
// does not.
type Processor struct {
	// Cores is the number of cores; default: one for each rank, and one for the forwarder of a
	// zipper node.
	Cores   int
	Switch  Time // time in seconds from waking a thread until it runs
	Call    Time // time in seconds of one read or write
	Byte    Time // time in seconds for each byte read or written
	Message Time // time in seconds of sending or receiving one message by MPI
}

// Network describes how adapters pass bytes, for simulation.
type Network struct {
	Packet Size // packet size in bytes; default 9000
	Burst  Size // bytes that a limited link passes at once after a pause; default 0
}

// Machine is given if all hosts and zippers are one machine, as in a lab of network namespaces. It
// is for simulation.
type Machine struct {
	Cores int // cores that all share; by default each has its own
	// Packet and Byte are the times that the machine takes for a packet that crosses a link, and
	// for each of its bytes, apart from the calls of sender and receiver. Links are work of the
	// machine, too.
	Packet, Byte Time
}

// Route lists the zippers to use between two clusters with several routes. The default is the route
// with the fewest zippers.
type Route struct {
	From, To string   // names of the clusters
	Via      []string // names of the zippers in order, from From to To; at least one
	line     int
}

// Rails describes how messages use several zippers side by side.
type Rails struct {
	// Policy is spread (default: the pairs of hosts take turns, each uses one), equal (a message is
	// cut into equal stripes) or proportional (stripes in proportion to the rates of the zippers).
	Policy string
	// Min is the size of the smallest message that is cut; default 0.
	Min Size
}

// Platform is the content of a platform file.
type Platform struct {
	Name string // name of the platform
	// Sharing rule: max-min (default), streams, buffered, zhu, zhu-paper or penalty.
	Sharing  string
	Clusters []Cluster
	Zippers  []Zipper
	Routes   []Route // explicit routes between clusters
	Rails    Rails   // use of several zippers side by side
	Network  Network
	Machine  Machine

	hosts map[string]place // hosts and zippers by name
}

// place identifies a host or zipper: the index of its cluster (-1 for a zipper), and its index
// there.
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

// Read reads a platform file and checks it. Errors name the line.
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
	line := func(field string) int { // line of a field of the file
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

// HasHost reports whether the platform has a host or zipper with this name.
func (p *Platform) HasHost(name string) bool { _, ok := p.hosts[name]; return ok }

// ClusterOf returns the index in Clusters of the cluster of a host, or -1 for a zipper or an
// unknown name.
func (p *Platform) ClusterOf(host string) int {
	if at, ok := p.hosts[host]; ok {
		return at.cluster
	}
	return -1
}

// Places returns the name of the host of each rank, by rank, if ranks fill the platform: clusters
// in order, hosts in order, each once for each of its cores.
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
