package simulation

import (
	"bytes"

	"github.com/leidenzipper/zipper/collectives"
	"github.com/leidenzipper/zipper/mmpi/engine"
)

// pattern gives bytes that tell who made them.
func pattern(who, n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(who*37 + i*11 + i/251)
	}
	return b
}

// collective is one collective of n ranks on m bytes each, as one of them sees it, and its result
// there; nil: none. The operator is addition modulo 256.
func collective(op collectives.Op, n, m, root, me int) (a engine.Coll, want []byte) {
	counts, displs := make([]int64, n), make([]int64, n)
	for r := range n {
		counts[r], displs[r] = int64(m), int64(r*m)
	}
	sum := func(ranks, from, size int) []byte { // of the first ranks, of what is at from
		s := make([]byte, m)
		for r := range ranks {
			for i, v := range pattern(r, size)[from:][:m] {
				s[i] += v
			}
		}
		return s
	}
	var all []byte
	for r := range n {
		all = append(all, pattern(r, m)...)
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
			a.Recv, a.RecvCounts, a.RecvDispls, want = make([]byte, n*m), counts, displs, all
		}
	case collectives.OpScatterv:
		if me == root {
			a.Send, a.SendCounts, a.SendDispls = all, counts, displs
		}
		want = pattern(me, m)
	case collectives.OpAlltoallv:
		a.Send, a.SendCounts, a.SendDispls = pattern(me, n*m), counts, displs
		a.Recv, a.RecvCounts, a.RecvDispls = make([]byte, n*m), counts, displs
		for s := range n {
			want = append(want, pattern(s, n*m)[me*m:][:m]...)
		}
	case collectives.OpReduce:
		if me == root {
			want = sum(n, 0, m)
		}
	case collectives.OpAllreduce:
		want = sum(n, 0, m)
	case collectives.OpReduceScatter:
		a.Send, a.RecvCounts = pattern(me, n*m), counts
		want = sum(n, me*m, n*m)
	case collectives.OpScan:
		want = sum(me+1, 0, m)
	case collectives.OpExscan:
		if me > 0 {
			want = sum(me, 0, m)
		}
	}
	return a, want
}
