// Package platform reads the platform file (hosts, networks and zippers with
// their capacities) and makes the resource graph of the messages on it.
//
// The file is YAML with comments, meant to be edited; docs/contention.md shows
// one. Unknown fields, capacities that are not positive and routes with cycles
// are errors that name the line.
package platform

import (
	"errors"
	"fmt"
	"io"
	"math/big"
	"reflect"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/leidenzipper/zipper/contention/penalty"
	"github.com/leidenzipper/zipper/contention/quantity"
)

// Rate is a capacity in bytes per second, more than 0. The zero value is "not
// given".
type Rate struct {
	*big.Rat
	line int
}

func (r *Rate) UnmarshalYAML(n *yaml.Node) error {
	v, err := scalar(n, quantity.Rate)
	if err != nil {
		return err
	}
	if v.Sign() == 0 {
		return fmt.Errorf("line %d: capacity %s: must be more than 0", n.Line, n.Value)
	}
	r.Rat, r.line = v, n.Line
	return nil
}

// Time is a duration in seconds; the zero value is 0.
type Time struct{ *big.Rat }

func (t *Time) UnmarshalYAML(n *yaml.Node) (err error) {
	t.Rat, err = scalar(n, quantity.Time)
	return err
}

// Size is a number of bytes; the zero value is "not given".
type Size struct{ *big.Rat }

func (s *Size) UnmarshalYAML(n *yaml.Node) (err error) {
	s.Rat, err = scalar(n, quantity.Size)
	return err
}

func scalar(n *yaml.Node, parse func(string) (*big.Rat, error)) (*big.Rat, error) {
	if n.Kind != yaml.ScalarNode {
		return nil, fmt.Errorf("line %d: want a number with a unit", n.Line)
	}
	v, err := parse(n.Value)
	if err != nil {
		return nil, fmt.Errorf("line %d: %w", n.Line, err)
	}
	return v, nil
}

// Duplex is an adapter: one rate for both directions, or both. In is towards
// the host, Out away from it.
type Duplex struct {
	In, Out    Rate
	Asymmetric bool // traffic of one direction slows the other; for the Zhu rule
}

func (d *Duplex) UnmarshalYAML(n *yaml.Node) error {
	if n.Kind == yaml.ScalarNode {
		if err := n.Decode(&d.In); err != nil {
			return err
		}
		d.Out = d.In
		return nil
	}
	var v struct {
		In, Out    Rate
		Asymmetric bool
	}
	if err := n.Decode(&v); err != nil {
		return err
	}
	if v.In.Rat == nil || v.Out.Rat == nil {
		return fmt.Errorf("line %d: give one rate, or both in and out", n.Line)
	}
	*d = Duplex{v.In, v.Out, v.Asymmetric}
	return nil
}

// Hosts is a number (hosts are then named after the cluster: a1, a2 ...) or a
// list of names.
type Hosts struct {
	Names []string
	count int
}

const maxHosts = 1 << 17

func (h *Hosts) UnmarshalYAML(n *yaml.Node) error {
	if n.Kind == yaml.SequenceNode {
		return n.Decode(&h.Names)
	}
	if err := n.Decode(&h.count); err != nil || h.count < 1 || h.count > maxHosts {
		return fmt.Errorf("line %d: hosts: want a number from 1 to %d or a list of names", n.Line, maxHosts)
	}
	return nil
}

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
	// Lone is the rate of a lone transfer, 1/alpha of the penalty rule; default
	// is what the adapter sends.
	Lone  Rate
	RuleB string `yaml:"rule_b"` // U (default), R or off
	line  int
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
	Handshake Time // before a message's first byte
	Latency   Time
	line      int
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
	Sharing  string // max-min (default), streams, zhu, zhu-paper or penalty
	Clusters []Cluster
	Zippers  []Zipper
	Routes   []Route
	Rails    Rails

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
	if err := p.check(); err != nil {
		return nil, err
	}
	return p, nil
}

// known refuses fields that the type does not have, at their line: a misspelt
// field would otherwise be ignored.
func known(n *yaml.Node, t reflect.Type) error {
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch {
	case n.Kind == yaml.AliasNode:
		return fmt.Errorf("line %d: aliases are not supported", n.Line)
	case n.Kind == yaml.SequenceNode && t.Kind() == reflect.Slice:
		for _, c := range n.Content {
			if err := known(c, t.Elem()); err != nil {
				return err
			}
		}
	case n.Kind == yaml.MappingNode && (t.Kind() == reflect.Struct || t.Kind() == reflect.Map):
		for i := 0; i+1 < len(n.Content); i += 2 {
			key, value := n.Content[i], t
			if t.Kind() == reflect.Map {
				value = t.Elem()
			} else {
				f, ok := t.FieldByNameFunc(func(name string) bool {
					f, _ := t.FieldByName(name)
					tag := f.Tag.Get("yaml")
					return f.IsExported() && (tag == key.Value || tag == "" && strings.ToLower(name) == key.Value)
				})
				if !ok {
					return fmt.Errorf("line %d: unknown field %q", key.Line, key.Value)
				}
				value = f.Type
			}
			if err := known(n.Content[i+1], value); err != nil {
				return err
			}
		}
	}
	return nil
}

func (p *Platform) check() error {
	p.hosts = make(map[string]place)
	if len(p.Clusters) == 0 {
		return errors.New("the platform has no clusters")
	}
	switch p.Sharing {
	case "", "max-min", "streams", "zhu", "zhu-paper", "penalty":
	default:
		return fmt.Errorf("sharing %q: use max-min, streams, zhu, zhu-paper or penalty", p.Sharing)
	}
	switch p.Rails.Policy {
	case "", "spread", "equal", "proportional":
	default:
		return fmt.Errorf("rails: policy %q: use spread, equal or proportional", p.Rails.Policy)
	}
	names := make(map[string]bool)
	for i := range p.Clusters {
		c := &p.Clusters[i]
		if c.Name == "" || names[c.Name] {
			return fmt.Errorf("line %d: cluster %q: want a name of its own", c.line, c.Name)
		}
		names[c.Name] = true
		if err := p.checkCluster(i, c); err != nil {
			return fmt.Errorf("line %d: cluster %s: %w", c.line, c.Name, err)
		}
	}
	for i := range p.Zippers {
		if err := p.checkZipper(i, &p.Zippers[i]); err != nil {
			return fmt.Errorf("line %d: zipper %s: %w", p.Zippers[i].line, p.Zippers[i].Name, err)
		}
	}
	for i := range p.Routes {
		if _, err := p.follow(&p.Routes[i]); err != nil {
			return fmt.Errorf("line %d: route from %s to %s: %w", p.Routes[i].line, p.Routes[i].From, p.Routes[i].To, err)
		}
	}
	return nil
}

func (p *Platform) checkCluster(index int, c *Cluster) error {
	if len(c.Hosts.Names) == 0 {
		for i := range max(c.Hosts.count, 1) {
			c.Hosts.Names = append(c.Hosts.Names, fmt.Sprintf("%s%d", c.Name, i+1))
		}
	}
	if c.Cores < 0 || c.Speed < 0 || c.Speed != c.Speed || c.Speed > 1e9 {
		return errors.New("cores and speed must not be negative")
	}
	if c.Cores == 0 {
		c.Cores = 1
	}
	if c.Speed == 0 {
		c.Speed = 1
	}
	if c.NIC.Out.Rat == nil {
		return errors.New("nic is missing: give the rate of the hosts' adapters")
	}
	if c.Lone.Rat == nil {
		c.Lone = c.NIC.Out
	}
	if c.RuleB == "" {
		c.RuleB = "U"
	}
	if _, err := penalty.ParseReading(c.RuleB); err != nil {
		return err
	}
	for i, h := range c.Hosts.Names {
		if err := p.addHost(h, place{index, i}); err != nil {
			return err
		}
	}
	return nil
}

func (p *Platform) addHost(name string, at place) error {
	if name == "" {
		return errors.New("a host has no name")
	}
	if name[0] >= '0' && name[0] <= '9' {
		return fmt.Errorf("host %s: names must not start with a digit (numbers are ranks)", name)
	}
	if _, ok := p.hosts[name]; ok {
		return fmt.Errorf("host %s is named twice", name)
	}
	p.hosts[name] = at
	return nil
}

func (p *Platform) checkZipper(index int, z *Zipper) error {
	if err := p.addHost(z.Name, place{-1, index}); err != nil {
		return err
	}
	if len(z.Ports) < 2 {
		return fmt.Errorf("has %d ports: a zipper joins at least two clusters", len(z.Ports))
	}
	for c, d := range z.Ports {
		if p.cluster(c) < 0 {
			return fmt.Errorf("port to unknown cluster %q", c)
		}
		if d.In.Rat == nil {
			return fmt.Errorf("port to %s has no rate", c)
		}
	}
	if z.Cores < 0 || z.Forwarder.Threads < 0 {
		return errors.New("cores and threads must not be negative")
	}
	if z.Forwarder.Copy.Rat != nil && z.Forwarder.Threads > 0 {
		return errors.New("forwarder: give a copy rate or threads, not both")
	}
	if z.Memory != nil {
		if z.Memory.Bandwidth.Rat == nil || z.Memory.Crossings < 0 {
			return errors.New("memory: give a bandwidth, and crossings of 1 or more")
		}
		if z.Memory.Crossings == 0 {
			z.Memory.Crossings = 2
		}
	}
	switch z.Relay {
	case "":
		z.Relay = CutThrough
	case CutThrough, StoreAndForward, Segmented:
	default:
		return fmt.Errorf("relay %q: use %s, %s or %s", z.Relay, CutThrough, StoreAndForward, Segmented)
	}
	if z.Segment.Rat == nil {
		z.Segment.Rat = big.NewRat(1<<20, 1)
	}
	if z.Segment.Sign() == 0 {
		return errors.New("segment must be more than 0 bytes")
	}
	return nil
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
