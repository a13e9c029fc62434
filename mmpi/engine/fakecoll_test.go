package engine

import (
	"fmt"

	"github.com/leidenzipper/zipper/collectives"
)

// collKey names a native collective: the communicator and how many came before.
type collKey struct {
	context uintptr
	number  int
}

// Coll starts a native collective: it is carried out when the last local process has come. The
// operator is addition modulo 256.
func (n *fakeNative) Coll(c *Comm, a *Coll) (uint64, error) {
	n.board.Lock()
	defer n.board.Unlock()
	if n.board.colls == nil {
		n.board.colls, n.board.tested = map[collKey][]*Coll{}, map[uint64]collKey{}
	}
	k := collKey{c.User, 0}
	for ; len(n.board.colls[k]) > 0 && n.board.colls[k][n.rank] != nil; k.number++ {
	}
	if n.board.colls[k] == nil {
		n.board.colls[k] = make([]*Coll, c.LocalSize())
	}
	all := n.board.colls[k]
	copied := *a
	all[n.rank] = &copied
	n.board.tokens++
	n.board.tested[n.board.tokens] = k
	for _, x := range all {
		if x == nil {
			return n.board.tokens, nil
		}
		if x.Op != a.Op || x.Root != a.Root {
			return 0, fmt.Errorf("%v root %d here, %v root %d there", a.Op, a.Root, x.Op, x.Root)
		}
	}
	perform(all)
	return n.board.tokens, nil
}

func (n *fakeNative) CollTest(token uint64) (bool, error) {
	n.board.Lock()
	defer n.board.Unlock()
	t, ok := n.board.tested[token]
	if !ok {
		return false, fmt.Errorf("no native collective %d", token)
	}
	for _, x := range n.board.colls[t] {
		if x == nil {
			return false, nil
		}
	}
	delete(n.board.tested, token)
	return true, nil
}

// Compute adds bytes, whatever the function.
func (n *fakeNative) Compute(_, _ uint8, inout, in []byte) error {
	for i := range inout {
		inout[i] += in[i]
	}
	return nil
}

func (n *fakeNative) ReduceLocal(in, inout []byte, count int, typ, op uint64) error {
	if typ != 7 || op != 8 || len(in) != count || len(inout) != count {
		return fmt.Errorf("reduction of %d with %d and %d bytes, type %d, operator %d", count, len(in), len(inout), typ,
			op)
	}
	for i := range in {
		inout[i] += in[i]
	}
	return nil
}

// perform carries out a native collective of all local processes.
func perform(all []*Coll) {
	at := func(b []byte, counts, displs []int64, i int) []byte { return b[displs[i]:][:counts[i]] }
	sum := func(from, to int) []byte {
		out := make([]byte, len(all[0].Send))
		for _, x := range all[from:to] {
			for i, v := range x.Send {
				out[i] += v
			}
		}
		return out
	}
	root := all[all[0].Root]
	results := make([][]byte, len(all))
	var total []byte
	if all[0].Op >= collectives.OpReduce {
		total = sum(0, len(all))
	}
	for i, x := range all {
		switch x.Op {
		case collectives.OpBcast:
			copy(x.Recv, root.Recv)
		case collectives.OpGatherv:
			copy(at(root.Recv, root.RecvCounts, root.RecvDispls, i), x.Send)
		case collectives.OpScatterv:
			copy(x.Recv, at(root.Send, root.SendCounts, root.SendDispls, i))
		case collectives.OpAllgatherv:
			for j, y := range all {
				copy(at(x.Recv, x.RecvCounts, x.RecvDispls, j), y.Send)
			}
		case collectives.OpAlltoallv:
			for j, y := range all {
				copy(at(x.Recv, x.RecvCounts, x.RecvDispls, j), at(y.Send, y.SendCounts, y.SendDispls, i))
			}
		case collectives.OpReduce:
			if x == root {
				results[i] = total
			}
		case collectives.OpAllreduce:
			results[i] = total
		case collectives.OpReduceScatter:
			from := int64(0)
			for _, c := range x.RecvCounts[:i] {
				from += c
			}
			results[i] = total[from:][:x.RecvCounts[i]]
		case collectives.OpScan:
			results[i] = sum(0, i+1)
		case collectives.OpExscan:
			if i > 0 {
				results[i] = sum(0, i)
			}
		}
	}
	for i, r := range results { // last: a result may lie where a contribution was
		copy(all[i].Recv, r)
	}
}
