package collectives

// reduceBlocks returns the schedule of a reduce_scatter of many bytes among few ranks. Every rank
// of a cluster combines its group of blocks: its own block and, of other clusters, those that
// reducer assigns to it. The ranks of a host first combine their operands among themselves; one of
// them combines the group of a rank on another host. Then the hosts' sums are sent to the rank with
// that group, and from there the other clusters' blocks to their owners. All this is done by
// segments, each with a slice of every block.
//
// For each of its ranks a host's link carries, each way, the group from each other host, and the
// block from each other cluster.
//
//	time 2λ(s) + L + M·G/c; bytes the receiving cluster's part; messages a segment one per
//	receiving rank
func reduceBlocks(e *env, a Args, v vector) Schedule {
	x := newBlocks(e, a, v)
	depth := e.t.LocalDepth
	s := pipeline(x.n, stage{x.onHost, depth}, stage{x.between, depth}, stage{x.cross, e.t.window()},
		stage{x.finish, 1})
	if same(a.Send, a.Recv) { // the operands were there
		s = append(s, compute(func() error { copy(a.Recv, x.result); return nil }))
	}
	return s
}

// blocks is the state that the segments of a reduceBlocks share.
type blocks struct {
	*env
	v      vector
	n      int     // number of segments
	groups [][]int // [local rank] ranks whose blocks it combines
	hosts  [][]int // local ranks of each host
	host   int     // host of this process
	place  []int   // [local rank] place on its host
	result []byte

	packed ring // operands, by the rank that combines them on this host
	mates  ring // operands of this process's share from the ranks of its host
	sums   ring // sums of its group from every host
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
	// longest is the length of the longest block, all that of the slices of all blocks, and here
	// that of the slices that this process combines on its host.
	longest, all, here := int64(0), 0, 0
	for _, b := range v.bytes {
		longest = max(longest, b)
	}
	x.n = max(1, cut(int(longest), 1, e.t.finer(int(longest), 8*FewRanks)).n)
	most := func(ranks []int) (bytes int) { // bytes of a slice of each of their blocks
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

// combines returns the rank of a host that combines there the operands of a rank's group.
func (x *blocks) combines(host, rank int) int {
	ranks := x.hosts[host]
	p := x.place[rank]
	if p < len(ranks) && ranks[p] == rank {
		return rank
	}
	return ranks[p%len(ranks)]
}

// slice returns the part of a rank's block that is in segment i, in bytes of the block.
func (x *blocks) slice(i, rank int) area {
	c := x.v.counts[rank]
	from, to := share(c, int64(i), int64(x.n)), share(c, int64(i+1), int64(x.n))
	return area{from * int64(x.extent), (to - from) * int64(x.extent)}
}

// bytes returns the number of bytes of a rank's group in segment i.
func (x *blocks) bytes(i, rank int) (n int64) {
	for _, r := range x.groups[rank] {
		n += x.slice(i, r).bytes
	}
	return n
}

// share calls f for every rank whose group rank of combines on this host, and returns the number of
// bytes.
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

// group returns the hosts' sums of this process's group. When they are combined the last one is the
// cluster's.
func (x *blocks) group(i int) [][]byte {
	hosts := len(x.hosts)
	return cutEqually(x.sums.at(i, hosts*int(x.bytes(i, x.local.Rank()))), hosts)
}

// of returns a rank's part of the sum of this process's group.
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

// arrived returns the place for this process's block from a cluster.
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
