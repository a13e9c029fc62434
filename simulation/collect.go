package simulation

import (
	"bytes"

	"github.com/leidenzipper/zipper/collectives"
	"github.com/leidenzipper/zipper/mmpi/engine"
)

// pattern returns n bytes that depend on rank who, so that the data of different ranks differ.
func pattern(who, n int) []byte { return part(who, 0, n) }

// part returns bytes from to from+n-1 of the pattern of rank who.
func part(who, from, n int) []byte {
	b := make([]byte, n)
	value, left := byte(who*37+from*11+from/251), 251-from%251 // byte i is who*37 + i*11 + i/251
	for i := range b {
		b[i] = value
		value += 11
		if left--; left == 0 {
			value, left = value+1, 251
		}
	}
	return b
}

// collective returns the arguments of the collective operation op of n ranks with m bytes each, as
// rank me passes them, and the correct content of its receive buffer. The content is nil where rank
// me receives none. root is the root of rooted operations. The operator of reductions is addition
// modulo 256.
func collective(op collectives.Op, n, m, root, me int) (a engine.Coll, want []byte) {
	counts, displs := make([]int64, n), make([]int64, n)
	for r := range n {
		counts[r], displs[r] = int64(m), int64(r*m)
	}
	sum := func(ranks, from int) []byte { // sum of the blocks at from of the first ranks
		s := part(0, from, m)
		for i, v := range s {
			s[i] = byte(ranks)*v + byte(37*ranks*(ranks-1)/2)
		}
		return s
	}
	all := func() (b []byte) {
		for r := range n {
			b = append(b, pattern(r, m)...)
		}
		return b
	}
	a.Args = collectives.Args{Op: op, Root: root, Send: pattern(me, m), Recv: make([]byte, m), Uniform: true, Count: m,
		Extent: 1, Commutative: true}
	a.Type, a.Operator = 7, 8
	switch op {
	case collectives.OpBcast:
		if want = pattern(root, m); me == root {
			a.Recv = bytes.Clone(want)
		}
	case collectives.OpGatherv, collectives.OpAllgatherv:
		if me == root || op == collectives.OpAllgatherv {
			a.Recv, a.RecvCounts, a.RecvDispls, want = make([]byte, n*m), counts, displs, all()
		}
	case collectives.OpScatterv:
		if me == root {
			a.Send, a.SendCounts, a.SendDispls = all(), counts, displs
		}
		want = pattern(me, m)
	case collectives.OpAlltoallv:
		a.Send, a.SendCounts, a.SendDispls = pattern(me, n*m), counts, displs
		a.Recv, a.RecvCounts, a.RecvDispls = make([]byte, n*m), counts, displs
		for s := range n {
			want = append(want, part(s, me*m, m)...)
		}
	case collectives.OpReduce:
		if me == root {
			want = sum(n, 0)
		}
	case collectives.OpAllreduce:
		want = sum(n, 0)
	case collectives.OpReduceScatter:
		a.Send, a.RecvCounts = pattern(me, n*m), counts
		want = sum(n, me*m)
	case collectives.OpScan:
		want = sum(me+1, 0)
	case collectives.OpExscan:
		if me > 0 {
			want = sum(me, 0)
		}
	}
	return a, want
}
