// Package collectivestest replaces the collectives of a cluster's native MPI in tests and
// simulations. They are carried out in memory, and the only operator is addition modulo 256.
package collectivestest

import (
	"fmt"

	"github.com/leidenzipper/zipper/collectives"
)

// Native has the collectives of one cluster's native MPI. The zero value has none. It has no lock:
// callers must let only one process at a time call it.
type Native struct {
	tokens  uint64
	started map[call]*joint
	waiting map[uint64]*joint // collectives by token, until Test has reported their end
	next    map[member]int    // number of collectives that each process has started
}

// joint is one collective.
type joint struct {
	args    []*collectives.Args // by local rank; nil before its call
	missing int
}

// member is a process of a communicator.
type member struct {
	context uintptr
	rank    int
}

// call identifies a collective: the communicator and the number of earlier ones.
type call struct {
	context uintptr
	number  int
}

// Start is a process's call: that of local rank rank among the local processes. The collective is
// carried out at the last call. The token is for Test. An error means that the processes have
// called different collectives.
func (n *Native) Start(context uintptr, processes, rank int, a collectives.Args) (token uint64, err error) {
	if n.started == nil {
		n.started, n.waiting, n.next = map[call]*joint{}, map[uint64]*joint{}, map[member]int{}
	}
	me := member{context, rank}
	k := call{context, n.next[me]}
	n.next[me]++
	all := n.started[k]
	if all == nil {
		all = &joint{make([]*collectives.Args, processes), processes}
		n.started[k] = all
	}
	all.args[rank] = &a
	all.missing--
	n.tokens++
	n.waiting[n.tokens] = all
	if all.missing > 0 {
		return n.tokens, nil
	}
	delete(n.started, k)
	for _, x := range all.args {
		if x.Op != a.Op || x.Root != a.Root {
			return 0, fmt.Errorf("%v root %d here, %v root %d there", a.Op, a.Root, x.Op, x.Root)
		}
	}
	perform(all.args)
	return n.tokens, nil
}

// Test reports whether a collective has finished, and then forgets the token.
func (n *Native) Test(token uint64) (bool, error) {
	all, ok := n.waiting[token]
	switch {
	case !ok:
		return false, fmt.Errorf("no native collective %d", token)
	case all.missing > 0:
		return false, nil
	}
	delete(n.waiting, token)
	return true, nil
}

// Add is the operator: inout[i] += in[i].
func Add(inout, in []byte) {
	for i := range inout {
		inout[i] += in[i]
	}
}

// perform carries out a native collective of all local processes.
func perform(all []*collectives.Args) {
	at := func(b []byte, counts, displs []int64, i int) []byte { return b[displs[i]:][:counts[i]] }
	sum := func(from, to int) []byte {
		out := make([]byte, len(all[0].Send))
		for _, x := range all[from:to] {
			Add(out, x.Send)
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
