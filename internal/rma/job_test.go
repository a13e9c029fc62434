package rma

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"testing"
)

const sum uint8 = 9 // the only function of the tests' arithmetic, on uint64

func compute(fn, _ uint8, inout, in []byte) error {
	if fn != sum || len(inout)%8 != 0 {
		return fmt.Errorf("function %d over %d bytes", fn, len(inout))
	}
	for i := 0; i < len(inout); i += 8 {
		binary.LittleEndian.PutUint64(inout[i:],
			binary.LittleEndian.Uint64(inout[i:])+binary.LittleEndian.Uint64(in[i:]))
	}
	return nil
}

// job has the nodes of a window and the messages between them. Messages arrive in any order that
// keeps the order of each pair.
type job struct {
	t     *testing.T
	nodes []*Node
	mem   [][]byte
	ways  map[[2]int][][]byte
	rnd   *rand.Rand
	done  map[any]bool
}

func newJob(t *testing.T, n, size int, seed uint64) *job {
	j := &job{t: t, ways: map[[2]int][][]byte{}, rnd: rand.New(rand.NewPCG(seed, 1)), done: map[any]bool{}}
	for i := range n {
		j.mem = append(j.mem, make([]byte, size))
		j.nodes = append(j.nodes, NewNode(Config{Rank: i, Size: n, Unit: 8, Memory: j.mem[i], Compute: compute}))
	}
	return j
}

// collect collects the messages and events of the nodes.
func (j *job) collect() {
	for i, n := range j.nodes {
		for o, ok := n.Next(); ok; o, ok = n.Next() {
			k := [2]int{i, o.To}
			j.ways[k] = append(j.ways[k], bytes.Clone(o.Message))
			n.Reuse(o.Message)
		}
		for _, d := range n.Done() {
			if j.done[d] {
				j.t.Fatalf("%v is over twice", d)
			}
			j.done[d] = true
		}
	}
}

// step delivers one message. It returns false if there is none.
func (j *job) step() bool {
	j.collect()
	var ready [][2]int
	for from := range j.nodes {
		for to := range j.nodes {
			if len(j.ways[[2]int{from, to}]) > 0 {
				ready = append(ready, [2]int{from, to})
			}
		}
	}
	if len(ready) == 0 {
		return false
	}
	k := ready[j.rnd.IntN(len(ready))]
	m := j.ways[k][0]
	j.ways[k] = j.ways[k][1:]
	if err := j.nodes[k[1]].Receive(k[0], m); err != nil {
		j.t.Fatal(err)
	}
	j.collect()
	return true
}

func (j *job) run() {
	for j.step() {
	}
}

func (j *job) ok(err error) {
	j.t.Helper()
	if err != nil {
		j.t.Fatal(err)
	}
}

func flat(b []byte) View {
	return View{Bytes(b), Layout{[]Span{{0, int64(len(b))}}, 0, 1}}
}

func (j *job) operate(rank int, op Operation, token any) {
	j.t.Helper()
	x, err := j.nodes[rank].Begin(op, token)
	j.ok(err)
	for !j.nodes[rank].Issue(x) {
		for j.nodes[rank].Full(op.Target) {
			if !j.step() {
				j.t.Fatal("nothing moves, and the target is full")
			}
		}
	}
}

func u64(v uint64) []byte { return binary.LittleEndian.AppendUint64(nil, v) }

func fetchAdd(target int, disp int64, v uint64, result []byte) Operation {
	return Operation{Verb: Fetch, Fn: sum, Target: target, Disp: disp, Data: flat(u64(v)),
		There: flat(make([]byte, 8)).Layout, Result: flat(result)}
}

func mustNext(t *testing.T, n *Node) []byte {
	t.Helper()
	o, ok := n.Next()
	if !ok {
		t.Fatal("nothing was sent")
	}
	return o.Message
}
