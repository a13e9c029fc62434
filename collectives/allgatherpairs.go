package collectives

// allgatherPairs returns the schedule of an allgather by pairs of ranks. From a cluster of a ranks
// to one of b every rank sends its block to its partner there. Then each rank has a bundle: its own
// block and those of its sources. The bundles are distributed inside the cluster by a native
// allgather. If several hosts have the same number of ranks each, they are first exchanged among
// the ranks with the same place on each host, then inside the hosts. So each host's link carries
// every block once.
//
//	time L + a·m·G + 2λ; bytes a·m, messages a
func allgatherPairs(e *env, a Args) Schedule {
	p := &bundles{e: e, a: a, bytes: make([]int64, e.local.Size())}
	for i := range p.bytes {
		p.each(i, func(r int) { p.bytes[i] += a.RecvCounts[r] })
	}
	s := Schedule{p.cross}
	if e.l.grid == nil {
		s = append(s, p.allgather)
	} else {
		s = append(s, p.amongHosts, p.insideHost)
	}
	return append(s, func() ([]Request, error) { return p.sent.reqs, nil }, p.unpack)
}

// bundles is the state that the rounds share.
type bundles struct {
	e     *env
	a     Args
	bytes []int64 // [local rank] size of its bundle

	mine     []byte
	sent     batch
	column   []byte   // bundles of the ranks with this place on each host
	received [][]byte // [local rank] its bundle, at the end
}

// each calls f for the ranks whose blocks are in a local rank's bundle.
func (p *bundles) each(local int, f func(rank int)) {
	f(p.e.l.mine()[local])
	p.e.l.sources(local, f)
}

// cross starts the messages between clusters: this rank sends its own block to its partner in each
// other cluster, and receives the blocks of the ranks whose partner it is behind its own in mine.
func (p *bundles) cross() ([]Request, error) {
	e, a := p.e, p.a
	me := e.local.Rank()
	p.mine = e.Scratch(int(p.bytes[me]))
	rest := p.mine[copy(p.mine, a.Send[:a.RecvCounts[e.l.Rank]]):]
	var b batch
	e.l.sources(me, func(r int) {
		var block []byte
		if block, rest = rest[:a.RecvCounts[r]], rest[a.RecvCounts[r]:]; len(block) > 0 {
			b.add(e.Recv(r, 0, block))
		}
	})
	own := p.mine[:a.RecvCounts[e.l.Rank]]
	if len(own) > 0 {
		e.l.others(func(k int) { p.sent.add(e.Send(e.l.partner(k), 0, own)) })
	}
	if b.err == nil {
		b.err = p.sent.err
	}
	return b.reqs, b.err
}

// place returns memory for the bundles of some local ranks, one after the other, and records the
// place of each.
func (p *bundles) place(ranks []int) []byte {
	var total int64
	for _, r := range ranks {
		total += p.bytes[r]
	}
	if p.received == nil {
		p.received = make([][]byte, p.e.local.Size())
	}
	all := p.e.Scratch(int(total))
	rest := all
	for _, r := range ranks {
		p.received[r], rest = rest[:p.bytes[r]], rest[p.bytes[r]:]
	}
	return all
}

func (p *bundles) allgather() ([]Request, error) {
	all := make([]int, p.e.local.Size())
	displs := make([]int64, len(all))
	for i := range all {
		if all[i] = i; i > 0 {
			displs[i] = displs[i-1] + p.bytes[i-1]
		}
	}
	r, err := p.e.local.Allgatherv(p.mine, p.place(all), p.bytes, displs)
	return []Request{r}, err
}

// amongHosts exchanges bundles among the ranks with this place on each host.
func (p *bundles) amongHosts() ([]Request, error) {
	g := p.e.l.grid
	x := newMoves(p.e.local.Size())
	for _, r := range g.column(g.place) {
		x.sendSame(r, int64(len(p.mine)))
		x.receive(r, p.bytes[r])
	}
	p.column = p.place(g.column(g.place))
	r, err := x.start(p.e.local, p.mine, p.column)
	return []Request{r}, err
}

// insideHost exchanges the bundles of amongHosts inside the host.
func (p *bundles) insideHost() ([]Request, error) {
	g, me := p.e.l.grid, p.e.local.Rank()
	x := newMoves(p.e.local.Size())
	var all []int
	for place, r := range g.rows[g.host] {
		if r == me {
			continue
		}
		var n int64
		for _, q := range g.column(place) {
			n += p.bytes[q]
		}
		x.sendSame(r, int64(len(p.column)))
		x.receive(r, n)
		all = append(all, g.column(place)...)
	}
	r, err := x.start(p.e.local, p.column, p.place(all))
	return []Request{r}, err
}

// unpack copies the blocks to their places.
func (p *bundles) unpack() ([]Request, error) {
	for i, rest := range p.received {
		p.each(i, func(r int) {
			to := block(p.a.Recv, p.a.RecvCounts[r], p.a.RecvDispls[r])
			rest = rest[copy(to, rest[:len(to)]):]
		})
	}
	return nil, nil
}
