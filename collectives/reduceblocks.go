package collectives

// reduceBlocks: a reduce_scatter of many bytes among few ranks. Every rank of a cluster combines
// its own block and, of other clusters, those that reducer gives it: its group. The ranks of a host
// first combine what they have among themselves; a group of a rank on another host is combined by
// one of them. Then the hosts' sums go to the rank whose group it is, and from there the other
// clusters' blocks to their owners. All that by segments, each with a slice of every block.
//
// On a host's link are, each way, for each of its ranks its group from each other host, and its
// block from each other cluster.
//
//	time 2λ(s) + L + M·G/c; bytes the receiving cluster's part; messages a segment one per
//	receiving rank
func reduceBlocks(e *env, a Args, v vector) Schedule {
	x := newBlocks(e, a, v)
	depth := e.t.LocalDepth
	s := pipeline(x.n, stage{x.onHost, depth}, stage{x.between, depth}, stage{x.cross, e.t.window()},
		stage{x.finish, 1})
	if same(a.Send, a.Recv) { // operands were there
		s = append(s, compute(func() error { copy(a.Recv, x.result); return nil }))
	}
	return s
}

// blocks is what the segments of a reduceBlocks share.
type blocks struct {
	*env
	v      vector
	n      int     // segments
	groups [][]int // [local rank] whose blocks it combines
	hosts  [][]int // local ranks
	host   int     // of this process
	place  []int   // [local rank] on its host
	result []byte

	packed ring // operands, by who combines them on this host
	mates  ring // the operands of this process's share from the ranks of its host
	sums   ring // its group from every host
	blocks ring // its block from every other cluster
}

func newBlocks(e *env, a Args, v vector) *blocks {
	n := e.local.Size()
	x := &blocks{env: e, v: v, groups: make([][]int, n), hosts: e.l.rows(a.Commutative), place: make([]int, n)}
	for k := range e.l.Clusters() {
		ranks := e.l.Members(k)
		for q, r := range ranks {
			at := q
			if k != e.l.Cluster {
				at = reducer(q, len(ranks), n)
			}
			x.groups[at] = append(x.groups[at], r)
		}
	}
	for h, ranks := range x.hosts {
		for p, r := range ranks {
			x.place[r] = p
			if r == e.local.Rank() {
				x.host = h
			}
		}
	}
	longest, all, here := int64(0), 0, 0 // of a block; slices of all; of those this process combines on its host
	for _, b := range v.bytes {
		longest = max(longest, b)
	}
	x.n = max(1, cut(int(longest), 1, e.t.finer(int(longest), 8*FewRanks)).n)
	most := func(ranks []int) (bytes int) { // of a slice of each of their blocks
		for _, r := range ranks {
			bytes += (int(v.counts[r]) + x.n - 1) / x.n * e.extent
		}
		return bytes
	}
	for r, group := range x.groups {
		all += most(group)
		if x.combines(x.host, r) == e.local.Rank() {
			here += most(group)
		}
	}
	depth, window := e.t.LocalDepth, e.t.window()
	x.packed = e.newRing(all, slots(x.n, depth))
	x.mates = e.newRing(len(x.hosts[x.host])*here, slots(x.n, depth, depth))
	x.sums = e.newRing(len(x.hosts)*most(x.groups[e.local.Rank()]), slots(x.n, depth, window, 1))
	x.blocks = e.newRing(e.l.Clusters()*most([]int{e.l.Rank}), slots(x.n, window, 1))
	if x.result = a.Recv; same(a.Send, a.Recv) {
		x.result = e.Scratch(int(v.bytes[e.l.Rank]))
	}
	return x
}

// combines gives the rank of a host that combines there what is for a rank's group.
func (x *blocks) combines(host, rank int) int {
	ranks := x.hosts[host]
	p := x.place[rank]
	if p < len(ranks) && ranks[p] == rank {
		return rank
	}
	return ranks[p%len(ranks)]
}

// slice gives what segment i has of a rank's block, in bytes of the block.
func (x *blocks) slice(i, rank int) area {
	c := x.v.counts[rank]
	from, to := share(c, int64(i), int64(x.n)), share(c, int64(i+1), int64(x.n))
	return area{from * int64(x.extent), (to - from) * int64(x.extent)}
}

// bytes is how many bytes segment i has of a rank's group.
func (x *blocks) bytes(i, rank int) (n int64) {
	for _, r := range x.groups[rank] {
		n += x.slice(i, r).bytes
	}
	return n
}

// share calls f for every rank whose group a rank of this host combines here, and gives the bytes.
func (x *blocks) share(i, of int, f func(rank int)) (n int64) {
	for r := range x.groups {
		if x.combines(x.host, r) == of {
			n += x.bytes(i, r)
			if f != nil {
				f(r)
			}
		}
	}
	return n
}

func (x *blocks) onHost(i int, b *batch) {
	me, m := x.local.Rank(), newMoves(x.local.Size())
	var all int64
	for r := range x.groups {
		all += x.bytes(i, r)
	}
	out := x.packed.at(i, int(all))
	rest, mine := out, x.share(i, me, nil)
	for _, q := range x.hosts[x.host] {
		n := x.share(i, q, func(rank int) {
			for _, r := range x.groups[rank] {
				s := x.slice(i, r)
				s.at += x.v.displs[r]
				rest = rest[copy(rest, s.of(x.v.all)):]
			}
		})
		m.send(q, n)
		m.receive(q, mine)
	}
	b.add(m.start(x.local, out, x.mates.at(i, int(m.received))))
}

func (x *blocks) between(i int, b *batch) {
	me, m, ranks := x.local.Rank(), newMoves(x.local.Size()), len(x.hosts[x.host])
	n := int(x.share(i, me, nil))
	list := cutEqually(x.mates.at(i, ranks*n), ranks)
	b.add(nil, x.sum(list))
	x.share(i, me, func(rank int) { m.send(rank, x.bytes(i, rank)) })
	mine := x.bytes(i, me)
	for h := range x.hosts {
		m.receive(x.combines(h, me), mine)
	}
	b.add(m.start(x.local, list[ranks-1], x.sums.at(i, int(m.received))))
}

// sum combines parts of equal length into the last one.
func (x *blocks) sum(parts [][]byte) error {
	if len(parts[0]) == 0 {
		return nil
	}
	return x.fold(parts, len(parts[0])/x.extent)
}

// group gives the hosts' sums of this process's group; when they are combined the last is the
// cluster's.
func (x *blocks) group(i int) [][]byte {
	hosts := len(x.hosts)
	return cutEqually(x.sums.at(i, hosts*int(x.bytes(i, x.local.Rank()))), hosts)
}

// of gives a rank's part of the sum of this process's group.
func (x *blocks) of(i, rank int, sum []byte) []byte {
	for _, r := range x.groups[x.local.Rank()] {
		n := x.slice(i, r).bytes
		if r == rank {
			return sum[:n]
		}
		sum = sum[n:]
	}
	return nil
}

// arrived gives the place for this process's block from a cluster.
func (x *blocks) arrived(i, cluster int) []byte {
	n := int(x.slice(i, x.l.Rank).bytes)
	return x.blocks.at(i, x.l.Clusters()*n)[cluster*n:][:n]
}

func (x *blocks) cross(i int, b *batch) {
	me, n := x.local.Rank(), x.local.Size()
	list := x.group(i)
	b.add(nil, x.sum(list))
	if x.slice(i, x.l.Rank).bytes > 0 {
		x.l.others(func(k int) {
			ranks := x.l.Members(k)
			b.add(x.Recv(ranks[reducer(me, n, len(ranks))], 0, x.arrived(i, k)))
		})
	}
	for _, r := range x.groups[me] {
		if part := x.of(i, r, list[len(list)-1]); r != x.l.Rank && len(part) > 0 {
			b.add(x.Send(r, 0, part))
		}
	}
}

func (x *blocks) finish(i int, b *batch) {
	list, sums := make([][]byte, x.l.Clusters()), x.group(i)
	for k := range list {
		list[k] = x.arrived(i, k)
	}
	list[x.l.Cluster] = x.of(i, x.l.Rank, sums[len(sums)-1])
	b.add(nil, x.sum(list))
	copy(x.slice(i, x.l.Rank).of(x.result), list[len(list)-1])
}
