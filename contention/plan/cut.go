package plan

// VertexCut returns a smallest set of ranks (of 0 to ranks-1) that touches every edge with traffic
// between two sides: a minimum vertex cover of these edges, by König's theorem. With these ranks
// on zipper nodes nothing crosses a forwarder. side has the side of each rank, 0 or 1; ranks on
// other sides are left out.
func VertexCut(ranks int, edges []Edge, side []int) []int {
	across := make([][]int, ranks) // edges by their end on side 0
	for _, e := range edges {
		a, b := e.A, e.B
		if side[a] == 1 {
			a, b = b, a
		}
		if e.Bytes > 0 && side[a] == 0 && side[b] == 1 {
			across[a] = append(across[a], b)
		}
	}
	mate := make([]int, ranks)
	for r := range mate {
		mate[r] = -1
	}
	for a := range across {
		if len(across[a]) > 0 {
			augment(a, across, mate)
		}
	}
	// Reached from free vertices of side 0 by alternating paths: the cover is
	// side 0 not reached and side 1 reached.
	reached := make([]bool, ranks)
	var stack []int
	for a := range across {
		if len(across[a]) > 0 && mate[a] < 0 {
			reached[a] = true
			stack = append(stack, a)
		}
	}
	for len(stack) > 0 {
		a := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		for _, b := range across[a] {
			if reached[b] {
				continue
			}
			reached[b] = true
			if next := mate[b]; next >= 0 && !reached[next] {
				reached[next] = true
				stack = append(stack, next)
			}
		}
	}
	var cover []int
	for r := range mate {
		if side[r] == 0 && len(across[r]) > 0 && !reached[r] || side[r] == 1 && reached[r] {
			cover = append(cover, r)
		}
	}
	return cover
}

// augment finds, breadth first, a path from vertex a along which edges are alternately outside and
// in the matching, and reverses it if it makes the matching larger. across has the neighbours on
// the other side of each vertex; mate has the partner of each vertex in the matching, or -1.
func augment(a int, across [][]int, mate []int) {
	before := map[int]int{} // side 1 vertex: the side 0 vertex it was reached from
	for queue := []int{a}; len(queue) > 0; queue = queue[1:] {
		for _, b := range across[queue[0]] {
			if _, seen := before[b]; seen {
				continue
			}
			before[b] = queue[0]
			if mate[b] >= 0 {
				queue = append(queue, mate[b])
				continue
			}
			for { // b is free: every edge of the path changes sides
				x := before[b]
				b, mate[b], mate[x] = mate[x], x, b
				if x == a {
					return
				}
			}
		}
	}
}
