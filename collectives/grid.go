package collectives

import "slices"

// grid is a cluster with several hosts that have the same number of ranks of a communicator. If the
// ranks of a host combine first, data goes to other hosts once, not once for each rank (two levels:
// Karonis et al., Exploiting Hierarchy in Parallel Computer Networks to Optimize Collective
// Operation Performance, IPDPS 2000).
type grid struct {
	rows        [][]int // [host][place] local rank, in ascending order
	host, place int     // host and place of this process
	ordered     bool    // whether all ranks of a host come before those of the next
}

// SetHosts sets the host, as any number, of each rank of this process's cluster. It must be called
// before the layout is used. Without it every algorithm treats all ranks alike.
func (l *Layout) SetHosts(hostOf []int) {
	of, place, rows := grouped(hostOf)
	l.hosts = rows
	me, each := l.local(), len(rows[0])
	if len(rows) > 1 && each > 1 && !slices.ContainsFunc(rows, func(row []int) bool { return len(row) != each }) {
		l.grid = &grid{rows: rows, host: of[me], place: place[me], ordered: slices.IsSorted(of)}
	}
}

// gridSums returns localSums for a grid. The ranks of a host combine their operands, each rank
// those of the slices of its column, which are the ranks with the same place on each host. Then the
// ranks of a column combine their operands, each those of its slice. Results take the reverse path.
// A host's link carries m·(1-1/h) bytes each way for in and for out, with h hosts and any number of
// ranks.
func gridSums(e *env, a Args, seg segments, window int) localSums {
	g, unit, depth := e.l.grid, e.extent, e.t.LocalDepth
	row, places, hosts := g.rows[g.host], len(g.rows[g.host]), len(g.rows)
	column := g.column(g.place)
	widest := (seg.size + e.local.Size() - 1) / e.local.Size() * unit
	packed, onHost := e.newRing(e.local.Size()*widest, slots(seg.n, depth)),
		e.newRing(e.local.Size()*widest, slots(seg.n, depth, depth))
	operands := e.newRing(hosts*widest, slots(seg.n, depth, window, depth))
	back, others := e.newRing(hosts*widest, slots(seg.n, depth, depth)),
		e.newRing(e.local.Size()*widest, slots(seg.n, depth, 1))

	// cut returns the slices of each column, as ranges of bytes of a segment, and their total
	// length.
	cut := func(i int) (of [][]area, bytes []int64) {
		s := e.slicing(seg.count(i), e.l.Cluster)
		of, bytes = make([][]area, places), make([]int64, places)
		for p := range of {
			for _, r := range g.column(p) {
				from, to := s.of(r)
				of[p] = append(of[p], area{int64(from * unit), int64((to - from) * unit)})
				bytes[p] += int64((to - from) * unit)
			}
		}
		return of, bytes
	}
	mine := func(i int) [][]byte { // all operands of this process's slice
		of, _ := cut(i)
		return cutEqually(operands.at(i, hosts*int(of[g.place][g.host].bytes)), hosts)
	}
	return localSums{
		in: []stage{{func(i int, b *batch) {
			of, bytes := cut(i)
			from := seg.of(a.Send, i, unit)
			out := packed.at(i, len(from))
			to := out
			for _, list := range of {
				for _, s := range list {
					to = to[copy(to, s.of(from)):]
				}
			}
			x := newMoves(e.local.Size())
			for p, r := range row {
				x.send(r, bytes[p])
				x.receive(r, bytes[g.place])
			}
			b.add(x.start(e.local, out, onHost.at(i, places*int(bytes[g.place]))))
		}, depth}, {func(i int, b *batch) {
			of, bytes := cut(i)
			list := cutEqually(onHost.at(i, places*int(bytes[g.place])), places)
			b.add(nil, e.fold(list, int(bytes[g.place])/unit))
			x := newMoves(e.local.Size())
			for h, r := range column {
				x.send(r, of[g.place][h].bytes)
				x.receive(r, of[g.place][g.host].bytes)
			}
			b.add(x.start(e.local, list[places-1], operands.at(i, hosts*int(of[g.place][g.host].bytes))))
		}, depth}},
		sum: func(i int) ([]byte, error) {
			list := mine(i)
			return list[hosts-1], e.fold(list, len(list[0])/unit)
		},
		at: func(i int) []byte { return mine(i)[hosts-1] },
		out: func(i int, result []byte, b *batch) {
			of, bytes := cut(i)
			x := newMoves(e.local.Size())
			for h, r := range column {
				x.sendSame(r, int64(len(result)))
				x.receive(r, of[g.place][h].bytes)
			}
			b.add(x.start(e.local, result, back.at(i, int(bytes[g.place]))))
		},
		after: []stage{{func(i int, b *batch) {
			_, bytes := cut(i)
			x := newMoves(e.local.Size())
			for p, r := range row {
				x.sendSame(r, bytes[g.place])
				x.receive(r, bytes[p])
			}
			b.add(x.start(e.local, back.at(i, int(bytes[g.place])), others.at(i, seg.count(i)*unit)))
		}, depth}, {func(i int, _ *batch) {
			of, _ := cut(i)
			to := seg.of(a.Recv, i, unit)
			from := others.at(i, len(to))
			for _, list := range of {
				for _, s := range list {
					from = from[copy(s.of(to), from):]
				}
			}
		}, 1}},
	}
}

// column returns the ranks with the same place on each host.
func (g *grid) column(place int) []int {
	list := make([]int, len(g.rows))
	for h, row := range g.rows {
		list[h] = row[place]
	}
	return list
}

// moves has the arguments of a native alltoall in which most ranks exchange nothing. Blocks are one
// after the other in the order of the calls.
type moves struct {
	scounts, sdispls, rcounts, rdispls []int64
	sent, received                     int64
}

func newMoves(ranks int) *moves {
	return &moves{scounts: make([]int64, ranks), sdispls: make([]int64, ranks), rcounts: make([]int64, ranks),
		rdispls: make([]int64, ranks)}
}

func (m *moves) send(to int, n int64) {
	m.scounts[to], m.sdispls[to] = n, m.sent
	m.sent += n
}

// sendSame sends the same bytes as the other calls.
func (m *moves) sendSame(to int, n int64) { m.scounts[to] = n }

func (m *moves) receive(from int, n int64) {
	m.rcounts[from], m.rdispls[from] = n, m.received
	m.received += n
}

func (m *moves) start(l Local, send, recv []byte) (Request, error) {
	return l.Alltoallv(send, m.scounts, m.sdispls, recv, m.rcounts, m.rdispls)
}
