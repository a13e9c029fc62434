package play

import (
	"fmt"
	"math/big"
	"time"

	"github.com/leidenzipper/zipper/contention/platform"
	"github.com/leidenzipper/zipper/internal/wire"
	"github.com/leidenzipper/zipper/simulation/kernel"
)

// site has the hosts and adapters of a platform in a kernel.
type site struct {
	k     *kernel.Kernel          // simulated world
	p     *platform.Platform      // platform that is simulated
	lines map[string]*kernel.Line // lines by name
	order []*kernel.Line          // lines in the order of their creation
	kinds map[*kernel.Line]string // kind of resource of each line: nic, port or backbone
	hosts map[string]*kernel.Host // machines of hosts and zippers, by name
	// ways has the result of way by its arguments, and of past by two hosts and a zipper.
	ways map[[3]string]*kernel.Way
}

func newSite(k *kernel.Kernel, p *platform.Platform) *site {
	s := &site{k: k, p: p, lines: map[string]*kernel.Line{}, kinds: map[*kernel.Line]string{},
		hosts: map[string]*kernel.Host{}, ways: map[[3]string]*kernel.Way{}}
	var all *kernel.Host
	if p.Machine.Cores > 0 {
		all = &kernel.Host{Name: "machine", Cores: p.Machine.Cores,
			Links: kernel.Links{Packet: seconds(p.Machine.Packet.Rat), Byte: 1e9 * number(p.Machine.Byte.Rat)}}
	}
	for i := range p.Clusters {
		c := &p.Clusters[i]
		for _, h := range c.Hosts.Names {
			s.hosts[h] = &kernel.Host{Name: h, Cores: max(c.Cores, c.Processor.Cores, 1), Share: all, Costs: costs(&c.Processor)}
			if rate := number(c.Seal.Rat); rate > 0 { // received and sent bytes are sealed
				s.hosts[h].Costs.Byte += 1e9 / rate
			}
		}
	}
	for i := range p.Zippers {
		z := &p.Zippers[i]
		h := &kernel.Host{Name: z.Name, Cores: max(z.Cores+1, z.Processor.Cores), Share: all, Costs: costs(&z.Processor)}
		// Received and sent bytes are copied.
		if copied := number(z.Forwarder.Copy.Rat); copied > 0 {
			h.Costs.Byte = max(h.Costs.Byte, 1e9/copied/2)
		}
		s.hosts[z.Name] = h
	}
	return s
}

// number returns quantity r as a float, or 0 if r is nil because it is not given.
func number(r *big.Rat) float64 {
	if r == nil {
		return 0
	}
	v, _ := r.Float64()
	return v
}

func seconds(r *big.Rat) time.Duration { return time.Duration(number(r) * float64(time.Second)) }

func costs(p *platform.Processor) kernel.Costs {
	return kernel.Costs{Switch: seconds(p.Switch.Rat), Call: seconds(p.Call.Rat), Byte: 1e9 * number(p.Byte.Rat)}
}

// line returns the line with a name, and creates it if needed, with a kind (nic, port or backbone)
// and a rate in bytes per second. A nil rate is unlimited.
func (s *site) line(kind, name string, rate *big.Rat) *kernel.Line {
	l := s.lines[name]
	if l == nil {
		l = s.k.Line(name, number(rate), int(number(s.p.Network.Burst.Rat)))
		s.lines[name] = l
		s.order = append(s.order, l)
		s.kinds[l] = kind
	}
	return l
}

// zipper returns the zipper with the given name, or nil if no zipper has it.
func (s *site) zipper(name string) *platform.Zipper {
	for i := range s.p.Zippers {
		if s.p.Zippers[i].Name == name {
			return &s.p.Zippers[i]
		}
	}
	return nil
}

// way returns the path of packets from one host or zipper to another on the network of a cluster.
// If both are the same host it has no lines.
func (s *site) way(from, to, cluster string) *kernel.Way {
	key := [3]string{from, to, cluster}
	if w := s.ways[key]; w != nil {
		return w
	}
	var c *platform.Cluster
	for i := range s.p.Clusters {
		if s.p.Clusters[i].Name == cluster {
			c = &s.p.Clusters[i]
		}
	}
	w := &kernel.Way{Packet: s.packet(), Unsent: wire.SegmentSize, Window: s.window(from, to, c), Delay: s.delay(from, to, c)}
	pass := func(l *kernel.Line, key string) { w.Lines = append(w.Lines, kernel.Passage{Line: l, Key: key}) }
	if from != to { // transfers inside a host use memory, which its processors pay for
		pass(s.adapter(from, c, true), to)
		if z, o := s.zipper(from) != nil, s.zipper(to) != nil; c.Backbone != nil && z != o {
			name, rate := ".up", c.Backbone.Out.Rat
			if z {
				name, rate = ".down", c.Backbone.In.Rat
			}
			pass(s.line("backbone", "backbone "+c.Name+name, rate), from+">"+to)
		}
		pass(s.adapter(to, c, false), from)
	}
	s.ways[key] = w
	return w
}

func (s *site) packet() int {
	if n := int(number(s.p.Network.Packet.Rat)); n > 0 {
		return n
	}
	return packet
}

// window returns the number of bytes that a connection may have in flight: the value of network c,
// or else the largest socket buffer of the zippers without the unsent bytes, or else the constant
// window.
func (s *site) window(from, to string, c *platform.Cluster) int {
	n := int(number(c.Buffer.Rat))
	if n > 0 {
		return n
	}
	for _, name := range []string{from, to} {
		if z := s.zipper(name); z != nil {
			n = max(n, int(number(z.Socket.Rat))-wire.SegmentSize)
		}
	}
	for i := range s.p.Zippers { // the hosts of one cluster run the same system
		n = max(n, int(number(s.p.Zippers[i].Socket.Rat))-wire.SegmentSize)
	}
	if n > 0 {
		return n
	}
	return window
}

// adapter returns the line for one direction of the adapter that host or zipper name has on the
// network of cluster c: away from it if out is true, otherwise towards it.
func (s *site) adapter(name string, c *platform.Cluster, out bool) *kernel.Line {
	kind, d, label := "nic", c.NIC, name
	if z := s.zipper(name); z != nil {
		kind, d, label = "port", z.Ports[c.Name], name+"."+c.Name
	}
	if out {
		return s.line(kind, label+".out", d.Out.Rat)
	}
	return s.line(kind, label+".in", d.In.Rat)
}

// delay returns the time for which a packet is in flight from one host or zipper to another on the
// network of cluster c, without the time in lines and processors. It is calculated from the
// platform's latency of a small message, without the processor times in it. A latency measured
// through a zipper is that of the path to the zipper and the path from it, so delay returns half of
// it.
func (s *site) delay(from, to string, c *platform.Cluster) time.Duration {
	if from == to {
		return 0
	}
	receiver, packet := s.hosts[to].Costs, seconds(s.p.Machine.Packet.Rat)
	z := s.zipper(from)
	if z == nil {
		z = s.zipper(to)
	}
	switch {
	case z == nil || z.Through.Rat == nil && z.Latency.Rat == nil:
		return max(0, seconds(c.Latency.Rat)-packet-receiver.Switch-2*receiver.Call)
	case z.Through.Rat == nil:
		return max(0, seconds(c.Latency.Rat)+seconds(z.Latency.Rat)/2-packet-receiver.Switch-2*receiver.Call)
	}
	mine, end := s.hosts[z.Name].Costs, costs(&c.Processor)
	return max(0, (seconds(z.Through.Rat)-mine.Switch-2*mine.Call-end.Switch-2*end.Call)/2-packet)
}

// path returns the path of a connection that host or zipper from dials to host or zipper to on the
// network of a cluster.
func (s *site) path(from, to, cluster string) kernel.Path {
	return kernel.Path{Out: s.way(from, to, cluster), In: s.way(to, from, cluster)}
}

// errNetwork returns an error which says that two hosts share no network.
func errNetwork(from, to string) error { return fmt.Errorf("%s and %s share no network", from, to) }
