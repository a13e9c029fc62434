package platform

import (
	"math/big"
	"slices"

	"github.com/leidenzipper/zipper/contention/num"
	"github.com/leidenzipper/zipper/contention/sharing"
)

// path creates the flows of a path over zippers (none within a cluster): one flow, or one per stage
// where a zipper stores and forwards.
//
// A crossing from A to B uses s.out, A's backbone, z.A.in, the forwarder, the memory bus, z.B.out,
// B's backbone and d.in. Between two zippers a message does not pass the backbone of their cluster.
func (b *builder[T]) path(from, to place, path []int) []hop[T] {
	w := &walker[T]{b: b, name: b.name(from) + ">" + b.name(to), from: from, at: b.name(from), zipper: from.cluster < 0}
	if from.cluster < 0 && to.cluster < 0 {
		c, _ := b.p.common(from, to) // paths has checked that there is one
		w.use(b.port(from.index, c, true))
		w.vertex = b.vertex(c, from.index)
		w.use(b.port(to.index, c, false))
		w.buffers(c, b.name(to), true)
		w.arrive(c, b.vertex(c, to.index))
		w.end()
		return w.hops
	}
	if len(path) > 0 {
		w.seal(from)
	}
	if from.cluster >= 0 {
		w.use(b.nic(from.cluster, from.index, true))
		w.vertex = from.index
	} else {
		w.use(b.port(from.index, to.cluster, true))
		w.vertex = b.vertex(to.cluster, from.index)
	}
	if len(path) > 0 {
		w.timed = !slices.ContainsFunc(path, func(z int) bool { return b.p.Zippers[z].Through.Rat == nil })
		w.backbone(from.cluster, true)
		steps := b.routes[[2]int{from.cluster, to.cluster}]
		for k, z := range path {
			w.through(z, steps[k].from, steps[k].to)
		}
		w.backbone(to.cluster, false)
	}
	if to.cluster >= 0 {
		w.use(b.nic(to.cluster, to.index, false))
		if len(path) > 0 {
			w.seal(to)
		}
		w.buffers(to.cluster, b.name(to), false)
		w.arrive(to.cluster, to.index)
	} else {
		w.use(b.port(to.index, from.cluster, false))
		w.buffers(from.cluster, b.name(to), true)
		w.arrive(from.cluster, b.vertex(from.cluster, to.index))
	}
	if from.cluster >= 0 && !w.timed {
		w.now.tail = w.now.tail.Add(value[T](b.p.Clusters[from.cluster].Latency.Rat))
	}
	if to.cluster >= 0 && to.cluster != from.cluster && !w.timed {
		w.now.tail = w.now.tail.Add(value[T](b.p.Clusters[to.cluster].Latency.Rat))
	}
	if len(path) > 0 {
		w.window(b.routes[[2]int{from.cluster, to.cluster}])
	}
	w.end()
	return w.hops
}

func (b *builder[T]) name(at place) string {
	if at.cluster < 0 {
		return b.p.Zippers[at.index].Name
	}
	return b.p.Clusters[at.cluster].Hosts.Names[at.index]
}

// vertex returns the number that a zipper has as a vertex in a cluster's switch. Zippers follow the
// hosts.
func (b *builder[T]) vertex(cluster, zipper int) int {
	return len(b.p.Clusters[cluster].Hosts.Names) + zipper
}

// walker collects the resources of the current stage of a path.
type walker[T num.Number[T]] struct {
	b      *builder[T]     // builder to which flows and resources are added
	name   string          // name of the path for people
	flow   sharing.Flow[T] // flow of the current stage
	now    hop[T]          // times of the current stage
	hops   []hop[T]        // finished stages
	vertex int             // vertex at which the path enters the current cluster's switch
	// side is the lowest capacity in bytes/s of the current stage since the last zipper that passes
	// on segments; 0 if there is none yet.
	side T
	// sides has the lowest capacities in bytes/s of the parts between zippers that pass on
	// segments.
	sides  []T
	timed  bool   // whether the latency of the path is known from its zippers
	from   place  // place of the sender
	at     string // name of the host or zipper that the path has reached
	zipper bool   // whether the path has reached a zipper
	of     int    // Hop.Of of the next hop: stands for the sender behind a zipper that translates
}

func (w *walker[T]) use(resource int) {
	u := one[T](resource)
	u.Hop = len(w.flow.Hops) + 1 // the edge that the next call of arrive ends
	w.flow.Uses = append(w.flow.Uses, u)
	c := w.b.resources[resource].Capacity
	if w.side.Sign() == 0 || c.Cmp(w.side) < 0 {
		w.side = c
	}
}

// arrive appends a hop to the flow, from the walker's vertex to the given vertex of a cluster's
// switch, which becomes the walker's vertex.
func (w *walker[T]) arrive(cluster, vertex int) {
	w.flow.Hops = append(w.flow.Hops, sharing.Hop{Domain: w.b.domain(cluster), From: w.vertex, To: vertex, Of: w.of})
	w.vertex, w.of = vertex, 0
}

func (w *walker[T]) backbone(cluster int, outward bool) {
	c := &w.b.p.Clusters[cluster]
	if c.Backbone != nil {
		w.use(w.b.duplex(sharing.Backbone, "backbone "+c.Name, ".up", ".down", c.Backbone, outward))
	}
}

// end closes the current stage and adds its flow. When the slowest part of a pipeline has passed
// its last byte, the faster parts still hold some of a segment; hop.fill is the time to drain it.
func (w *walker[T]) end() {
	if w.now.segment != nil {
		w.sides = append(w.sides, w.side)
		one := num.Int[T](1)
		slowest := w.sides[0]
		for _, s := range w.sides {
			w.now.fill = w.now.fill.Add(one.Div(s))
			if s.Cmp(slowest) < 0 {
				slowest = s
			}
		}
		w.now.fill = w.now.fill.Sub(one.Div(slowest))
	}
	w.flow.Name = w.name
	w.now.flow = len(w.b.flows)
	w.b.flows = append(w.b.flows, w.flow)
	w.hops = append(w.hops, w.now)
	w.flow, w.now, w.sides = sharing.Flow[T]{}, hop[T]{}, nil
	var none T
	w.side = none
}

func (w *walker[T]) through(zipper, from, to int) {
	z := &w.b.p.Zippers[zipper]
	in, out := w.b.port(zipper, from, false), w.b.port(zipper, to, true)
	w.now.delay = w.now.delay.Add(value[T](z.Handshake.Rat))
	// The latency of a network in between, which calibration does not measure.
	if from != w.from.cluster {
		one := value[T](w.b.p.Clusters[from].Latency.Rat)
		w.now.delay, w.now.tail = w.now.delay.Add(one).Add(one), w.now.tail.Add(one)
	}
	defer func() {
		latency := z.Latency
		if w.timed {
			latency = z.Through
		}
		w.now.tail = w.now.tail.Add(value[T](latency.Rat))
		w.vertex = w.b.vertex(to, zipper)
	}()
	if w.now.eager == nil || z.Eager.Rat != nil && z.Eager.Cmp(w.now.eager) < 0 {
		w.now.eager = z.Eager.Rat
	}
	if z.Relay == Translated {
		w.of = 1 + w.from.index + w.from.cluster*maxHosts
		w.use(in)
		w.use(out)
		return
	}
	if window := value[T](z.Window.Rat); w.flow.Window.Sign() == 0 || window.Cmp(w.flow.Window) < 0 {
		w.flow.Window = window
	}
	if socket := value[T](z.Socket.Rat); socket.Cmp(w.flow.Socket) > 0 {
		w.flow.Socket = socket
	}
	w.use(in)
	w.buffers(from, z.Name, true)
	w.arrive(from, w.b.vertex(from, zipper))
	if z.Relay == StoreAndForward {
		w.thread(z, from, to, []int{in}, false)
		w.memory(z, true)
		w.end()
		w.thread(z, from, to, []int{out}, true)
		w.memory(z, true)
	} else {
		w.thread(z, from, to, []int{in, out}, true)
		w.memory(z, false)
		if z.Relay == Segmented {
			if w.now.segment == nil || z.Segment.Cmp(w.now.segment) > 0 {
				w.now.segment = z.Segment.Rat
			}
			w.sides = append(w.sides, w.side)
			var none T
			w.side = none
		}
	}
	w.copy(z, from, to)
	w.use(out)
}

// direction returns the part of a resource's name that stands for one direction through a zipper,
// from one cluster to another: "a>b".
func (w *walker[T]) direction(from, to int) string {
	return w.b.p.Clusters[from].Name + ">" + w.b.p.Clusters[to].Name
}

func (w *walker[T]) copy(z *Zipper, from, to int) {
	f := &z.Forwarder
	if f.Copy.Rat == nil {
		return
	}
	name := z.Name + ".cpu"
	if !f.Half {
		name += "." + w.direction(from, to)
	}
	r := w.b.resource(sharing.Copy, name, f.Copy.Rat, "", nil, false)
	w.flow.Uses = append(w.flow.Uses, one[T](r))
}

// thread adds the time that the threads of zipper z need for each byte from one cluster to another:
// 1/r for each of ports, which are adapters with rate r for which a thread waits, and the copy if
// copies is true.
func (w *walker[T]) thread(z *Zipper, from, to int, ports []int, copies bool) {
	f := &z.Forwarder
	if f.Threads == 0 {
		return
	}
	name := z.Name + ".fwd"
	if f.OneWay {
		name += "." + w.direction(from, to)
	}
	r := w.b.resource(sharing.Thread, name, big.NewRat(int64(f.Threads), 1), "", nil, false)
	u := sharing.Use[T]{Resource: r, Per: slices.Clone(ports)}
	if copies {
		u.Weight = value[T](f.CopyTime.Rat)
	}
	w.flow.Uses = append(w.flow.Uses, u)
	if f.Threads > 1 { // messages between a pair of hosts stay on one thread
		u.Resource = w.b.resource(sharing.Thread, name+" thread of "+w.name, big.NewRat(1, 1), "", nil, false)
		w.flow.Uses = append(w.flow.Uses, u)
	}
}

func (w *walker[T]) memory(z *Zipper, half bool) {
	if z.Memory == nil {
		return
	}
	r := w.b.resource(sharing.Memory, z.Name+".mem", z.Memory.Bandwidth.Rat, "", nil, false)
	weight := num.Int[T](int64(z.Memory.Crossings))
	if half {
		weight = weight.Div(num.Int[T](2))
	}
	w.flow.Uses = append(w.flow.Uses, sharing.Use[T]{Resource: r, Weight: weight})
}
