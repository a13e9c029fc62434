package platform

import (
	"fmt"
	"math/big"
	"slices"

	"github.com/leidenzipper/zipper/contention/num"
	"github.com/leidenzipper/zipper/contention/penalty"
	"github.com/leidenzipper/zipper/contention/sharing"
	"github.com/leidenzipper/zipper/contention/solve"
)

// Message is one transfer between hosts or zippers, before it is routed.
type Message struct {
	Name     string   // name of the message for people
	From, To string   // names of hosts or zippers
	Bytes    *big.Rat // size in bytes
	Start    *big.Rat // seconds; nil is 0
	Delay    *big.Rat // seconds between start and first byte; nil is 0
	After    []int    // indices of messages that must have finished before this one starts
	// Sent has the indices of messages of the same host with which it must have finished as their
	// sender (solve.Transfer.Sent).
	Sent []int
	// Turn is the position of the send among all steps of the sender, and of the receive among
	// those of the receiver. Work and Taken are the processor time in seconds that the sender and
	// the receiver spend before it, since their previous step. They are for simulation, in place of
	// Delay and After; nil if not known.
	Turn        [2]int
	Work, Taken *big.Rat
	// SameHost allows From = To: two ranks of one host.
	SameHost bool
	Ranks    []int // sender and receiver of a message between virtual ranks; nil between hosts
	Line     int   // line of the pattern or trace, for errors; 0 if there is none
}

// Graph is a set of messages on a platform: the network, and the transfers (stages and stripes) of
// each message.
type Graph[T num.Number[T]] struct {
	Network *sharing.Network[T] // resources and flows of the platform that the messages use
	// Transfers has the stages and stripes of the messages, which other fields refer to by index.
	Transfers []solve.Transfer[T]
	// Parts has the indices of the transfers of each message, First those that start it, and Last
	// those that end it.
	Parts, First, Last [][]int
	// Readings has the condition of rule (b) of the penalty model, by index of the domain
	// resource, which stands for a cluster's switch.
	Readings map[int]penalty.Reading

	striped []stripes // messages whose split depends on the rates
}

type stripes struct {
	flows []int    // flow of the first stage of each stripe, by stripe
	parts [][]int  // indices of the transfers of each stripe, by stripe
	bytes *big.Rat // size of the whole message in bytes
}

type builder[T num.Number[T]] struct {
	p         *Platform             // platform on which the messages are sent
	resources []sharing.Resource[T] // resources so far, which are referred to by index
	index     map[string]int        // index of each resource, by name
	flows     []sharing.Flow[T]     // flows so far, which are referred to by index
	// flowOf has the stages of each path, by sender, receiver and zippers as text.
	flowOf map[string][]hop[T]
	g      *Graph[T]         // graph that is being built
	routes map[[2]int][]step // steps between two clusters, by their indices
}

// hop is one stage of a path: its flow, and the times in seconds before and after its bytes.
type hop[T any] struct {
	flow        int      // index of the flow
	delay, tail T        // delay only applies to messages of more than eager bytes
	eager       *big.Rat // size of the longest message without delay, in bytes; nil if all have it
	// fill is the time to drain the last segment after the last byte, in seconds per byte of the
	// segment, which has at most segment bytes.
	fill    T
	segment *big.Rat
}

// Build creates the network and the transfers of messages on platform p. Errors name the message's
// line, or its name if it has no line.
func Build[T num.Number[T]](p *Platform, messages []Message) (*Graph[T], error) {
	k := len(messages)
	b := &builder[T]{p: p, index: make(map[string]int), flowOf: make(map[string][]hop[T]),
		routes: make(map[[2]int][]step),
		g: &Graph[T]{Parts: make([][]int, k), First: make([][]int, k), Last: make([][]int, k),
			Readings: make(map[int]penalty.Reading)}}
	for i := range messages {
		if err := b.message(i, &messages[i]); err != nil {
			if messages[i].Line > 0 {
				return nil, fmt.Errorf("line %d: %w", messages[i].Line, err)
			}
			return nil, fmt.Errorf("message %s: %w", messages[i].Name, err)
		}
	}
	for i, m := range messages {
		var after, sent []int
		for _, a := range slices.Concat(m.After, m.Sent) {
			if a < 0 || a >= k {
				return nil, fmt.Errorf("message %s waits for message number %d: there are %d", m.Name, a, k)
			}
		}
		for _, a := range m.After {
			after = append(after, b.g.Last[a]...)
		}
		for _, a := range m.Sent {
			sent = append(sent, b.g.First[a]...)
		}
		for _, t := range b.g.First[i] {
			b.g.Transfers[t].After = append(b.g.Transfers[t].After, after...)
			b.g.Transfers[t].Sent = append(b.g.Transfers[t].Sent, sent...)
		}
	}
	n, err := sharing.New(b.resources, b.flows)
	if err != nil {
		return nil, err
	}
	b.g.Network = n
	return b.g, b.g.split(b.g.Transfers, n)
}

// Replan returns the transfers of the graph for a network with changed capacities n, with
// proportional stripes that are split according to its rates.
func (g *Graph[T]) Replan(n *sharing.Network[T]) ([]solve.Transfer[T], error) {
	ts := slices.Clone(g.Transfers)
	return ts, g.split(ts, n)
}

// split sets the sizes of proportional stripes in ts, the transfers of the graph. They are
// proportional to the rates that the stripes of a message would have on network n without other
// messages.
func (g *Graph[T]) split(ts []solve.Transfer[T], n *sharing.Network[T]) error {
	var z T
	for _, s := range g.striped {
		a, err := sharing.MaxMin[T]{}.Share(n, sharing.Each(s.flows...))
		if err != nil {
			return err
		}
		for k, bytes := range solve.Split(z.FromRat(s.bytes), a.Rate) {
			for _, t := range s.parts[k] {
				ts[t].Bytes = bytes
			}
		}
	}
	return nil
}

func value[T num.Number[T]](r *big.Rat) T {
	var z T
	if r == nil {
		return z
	}
	return z.FromRat(r)
}

// resource returns the index of a resource, and creates it if needed. If back is not empty it also
// creates a twin for the reverse direction.
func (b *builder[T]) resource(kind sharing.Kind, name string, capacity *big.Rat, back string, backCapacity *big.Rat,
	asymmetric bool) int {
	if i, ok := b.index[name]; ok {
		return i
	}
	i := len(b.resources)
	b.index[name] = i
	r := sharing.Resource[T]{Name: name, Kind: kind, Capacity: value[T](capacity), Twin: -1}
	if back == "" {
		b.resources = append(b.resources, r)
		return i
	}
	b.index[back] = i + 1
	r.Twin, r.Asymmetric = i+1, asymmetric
	b.resources = append(b.resources, r, sharing.Resource[T]{Name: back, Kind: kind, Capacity: value[T](backCapacity),
		Twin: i, Asymmetric: asymmetric})
	return i
}

func (b *builder[T]) duplex(kind sharing.Kind, name, out, in string, d *Duplex, outward bool) int {
	if outward {
		return b.resource(kind, name+out, d.Out.Rat, name+in, d.In.Rat, d.Asymmetric)
	}
	return b.resource(kind, name+in, d.In.Rat, name+out, d.Out.Rat, d.Asymmetric)
}

func (b *builder[T]) nic(cluster, host int, outward bool) int {
	c := &b.p.Clusters[cluster]
	return b.duplex(sharing.NIC, c.Hosts.Names[host], ".out", ".in", &c.NIC, outward)
}

// port returns the index of the resource for one direction of a zipper's adapter on a cluster: away
// from the zipper if outward is true, otherwise towards it.
func (b *builder[T]) port(zipper, cluster int, outward bool) int {
	z, c := &b.p.Zippers[zipper], b.p.Clusters[cluster].Name
	d := z.Ports[c]
	return b.duplex(sharing.Port, z.Name+"."+c, ".out", ".in", &d, outward)
}

func (b *builder[T]) domain(cluster int) int {
	c := &b.p.Clusters[cluster]
	i := b.resource(sharing.Domain, "switch "+c.Name, c.Lone.Rat, "", nil, false)
	b.g.Readings[i], _ = penalty.ParseReading(c.RuleB) // Read has checked it
	return i
}

func one[T num.Number[T]](resource int) sharing.Use[T] {
	return sharing.Use[T]{Resource: resource, Weight: num.Int[T](1)}
}

func (b *builder[T]) message(i int, m *Message) error {
	from, ok := b.p.hosts[m.From]
	if !ok {
		return fmt.Errorf("unknown host %q", m.From)
	}
	to, ok := b.p.hosts[m.To]
	if !ok {
		return fmt.Errorf("unknown host %q", m.To)
	}
	if m.Bytes == nil || m.Bytes.Sign() < 0 {
		return fmt.Errorf("message from %s to %s has no size", m.From, m.To)
	}
	if m.From == m.To {
		if !m.SameHost {
			return fmt.Errorf("message from %s to itself", m.From)
		}
		return b.local(i, m, from)
	}
	paths, err := b.paths(from, to)
	if err != nil {
		return err
	}
	cut := len(paths) > 1 && b.p.Rails.Policy != "" && b.p.Rails.Policy != "spread" &&
		(b.p.Rails.Min.Rat == nil || m.Bytes.Cmp(b.p.Rails.Min.Rat) >= 0)
	if !cut {
		// Pairs of hosts take turns over the paths: the sum of the hosts' indices in their
		// clusters decides. With two paths all pairs of hosts with equal indices use the first.
		b.part(i, m, from, to, paths[(max(from.index, 0)+max(to.index, 0))%len(paths)], m.Bytes)
		return nil
	}
	s := stripes{bytes: m.Bytes}
	bytes := new(big.Rat).Quo(m.Bytes, big.NewRat(int64(len(paths)), 1))
	for _, w := range paths {
		parts := b.part(i, m, from, to, w, bytes)
		s.parts = append(s.parts, parts)
		s.flows = append(s.flows, b.g.Transfers[parts[0]].Flow)
	}
	if b.p.Rails.Policy == "proportional" && m.Bytes.Sign() > 0 {
		b.g.striped = append(b.g.striped, s)
	}
	return nil
}

// local adds message i, which is between ranks of one host, at the place at.
func (b *builder[T]) local(i int, m *Message, at place) error {
	key := "local " + m.From
	if b.flowOf[key] == nil {
		f := sharing.Flow[T]{Name: m.From}
		if at.cluster >= 0 && b.p.Clusters[at.cluster].Memory.Rat != nil {
			f.Uses = append(f.Uses, one[T](b.resource(sharing.Memory, m.From+".mem",
				b.p.Clusters[at.cluster].Memory.Rat, "", nil, false)))
		}
		b.flowOf[key] = []hop[T]{{flow: len(b.flows)}}
		if f.Uses == nil { // it costs nothing: any flow can carry an empty transfer
			f.Uses = append(f.Uses, one[T](b.resource(sharing.Memory, "free", big.NewRat(1, 1), "", nil, false)))
		}
		b.flows = append(b.flows, f)
	}
	bytes := m.Bytes
	if at.cluster < 0 || b.p.Clusters[at.cluster].Memory.Rat == nil {
		bytes = new(big.Rat)
	}
	b.append(i, m, b.flowOf[key], bytes)
	return nil
}

// paths returns the possible paths from one place to another, each a list of indices of zippers in
// order; a path inside a network is nil.
func (b *builder[T]) paths(from, to place) ([][]int, error) {
	switch {
	case from.cluster < 0 && to.cluster < 0:
		if _, ok := b.p.common(from, to); !ok {
			return nil, fmt.Errorf("zippers %s and %s have no network in common", b.name(from), b.name(to))
		}
		return [][]int{nil}, nil
	case from.cluster < 0 || to.cluster < 0:
		z, c := from, to
		if to.cluster < 0 {
			z, c = to, from
		}
		zipper, cluster := &b.p.Zippers[z.index], b.p.Clusters[c.cluster].Name
		if _, ok := zipper.Ports[cluster]; !ok {
			return nil, fmt.Errorf("zipper %s has no port to cluster %s", zipper.Name, cluster)
		}
		return [][]int{nil}, nil
	case from.cluster == to.cluster:
		return [][]int{nil}, nil
	}
	key := [2]int{from.cluster, to.cluster}
	steps, ok := b.routes[key]
	if !ok {
		var err error
		if steps, err = b.p.route(from.cluster, to.cluster); err != nil {
			return nil, err
		}
		b.routes[key] = steps
	}
	// Path k takes the zipper with number k of each step. Steps with fewer zippers repeat them.
	most := 0
	for _, s := range steps {
		most = max(most, len(s.zippers))
	}
	paths := make([][]int, most)
	for k := range paths {
		for _, s := range steps {
			paths[k] = append(paths[k], s.zippers[k%len(s.zippers)])
		}
	}
	return paths, nil
}

// part adds the transfers of bytes bytes of message i over one path, a list of indices of zippers,
// and returns their indices. It may be a stripe of the message.
func (b *builder[T]) part(i int, m *Message, from, to place, path []int, bytes *big.Rat) []int {
	key := fmt.Sprint(m.From, " ", m.To, path)
	hops, ok := b.flowOf[key]
	if !ok {
		hops = b.path(from, to, path)
		b.flowOf[key] = hops
	}
	return b.append(i, m, hops, bytes)
}

func (b *builder[T]) append(i int, m *Message, hops []hop[T], bytes *big.Rat) []int {
	var parts []int
	for k, h := range hops {
		t := solve.Transfer[T]{Name: m.Name, Flow: h.flow, Bytes: value[T](bytes), Tail: h.tail}
		if h.eager == nil || bytes.Cmp(h.eager) > 0 {
			t.Delay, t.Handshake = h.delay, h.delay
		}
		if h.segment != nil && bytes.Sign() > 0 {
			segment := h.segment
			if bytes.Cmp(segment) < 0 {
				segment = bytes
			}
			t.Tail = t.Tail.Add(h.fill.Mul(value[T](segment)))
		}
		at := len(b.g.Transfers)
		if k == 0 {
			t.Start, t.Delay = value[T](m.Start), t.Delay.Add(value[T](m.Delay))
			b.g.First[i] = append(b.g.First[i], at)
		} else {
			t.After = []int{at - 1}
		}
		if k == len(hops)-1 {
			b.g.Last[i] = append(b.g.Last[i], at)
		}
		b.g.Transfers = append(b.g.Transfers, t)
		parts = append(parts, at)
	}
	b.g.Parts[i] = append(b.g.Parts[i], parts...)
	return parts
}
