package platform

import (
	"errors"
	"fmt"
	"math/big"
	"reflect"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/leidenzipper/zipper/contention/penalty"
)

// known returns an error, with the line, for a field in YAML node n that the Go type t does not
// have. Otherwise a misspelt field would be ignored.
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
			key := n.Content[i]
			var value reflect.Type
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

func (p *Platform) check(line func(field string) int) error {
	p.hosts = make(map[string]place)
	if len(p.Clusters) == 0 {
		return errors.New("the platform has no clusters")
	}
	switch p.Sharing {
	case "", "max-min", "streams", "buffered", "zhu", "zhu-paper", "penalty":
	default:
		return fmt.Errorf("line %d: sharing %q: use max-min, streams, buffered, zhu, zhu-paper or penalty",
			line("sharing"), p.Sharing)
	}
	switch p.Rails.Policy {
	case "", "spread", "equal", "proportional":
	default:
		return fmt.Errorf("line %d: rails: policy %q: use spread, equal or proportional", line("rails"), p.Rails.Policy)
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
	if p.Machine.Cores < 0 {
		return fmt.Errorf("line %d: machine: cores must not be negative", line("machine"))
	}
	for i := range p.Routes {
		if _, err := p.follow(&p.Routes[i]); err != nil {
			return fmt.Errorf("line %d: route from %s to %s: %w", p.Routes[i].line, p.Routes[i].From, p.Routes[i].To,
				err)
		}
	}
	return nil
}

// maxStreams is the largest number of connections for large messages between two forwarders.
// farStreams is the initial number over a long path. Both are as in forwarder/trunk.
const (
	maxStreams = 16
	farStreams = 4
)

// longTrip returns the round-trip time in seconds from which a path counts as long, 2 ms:
// forwarder/trunk.Far.
func longTrip() *big.Rat { return big.NewRat(2, 1000) }

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
	switch {
	case c.Streams < 0 || c.Streams > maxStreams:
		return fmt.Errorf("%d streams: want 1 to %d", c.Streams, maxStreams)
	case c.Buffer.Rat != nil && c.Buffer.Sign() == 0:
		return errors.New("buffer must be more than 0 bytes")
	case c.Buffer.Rat != nil && (c.Latency.Rat == nil || c.Latency.Sign() == 0):
		return errors.New("a buffer bounds the rate by the round trip: give a latency")
	}
	if c.Streams == 0 {
		c.Streams = 1
		if c.Latency.Rat != nil && new(big.Rat).Add(c.Latency.Rat, c.Latency.Rat).Cmp(longTrip()) > 0 {
			c.Streams = farStreams
		}
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
	if _, err := strconv.Atoi(name); err == nil {
		return fmt.Errorf("host %s: want a name or an address (a number is a rank)", name)
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
	case Translated:
		if z.Forwarder != (Forwarder{}) || z.Memory != nil {
			return errors.New("relay nat: no bytes pass through the forwarder: leave out forwarder and memory")
		}
	default:
		return fmt.Errorf("relay %q: use %s, %s, %s or %s", z.Relay, CutThrough, StoreAndForward, Segmented, Translated)
	}
	if z.Segment.Rat == nil {
		z.Segment.Rat = big.NewRat(1<<20, 1)
	}
	if z.Window.Rat == nil {
		z.Window.Rat = big.NewRat(4<<20, 1)
	}
	if z.Window.Sign() == 0 {
		return errors.New("window must be more than 0 bytes")
	}
	if z.Segment.Sign() == 0 {
		return errors.New("segment must be more than 0 bytes")
	}
	return nil
}
