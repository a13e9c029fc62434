package collectives

import (
	"bytes"
	"crypto/subtle"
	"encoding/binary"
	"fmt"
	"math"
	"math/rand"
)

// call is one collective in the calls of all ranks, with the correct results.
type call struct {
	args []Args   // [rank]
	want [][]byte // [rank] content of Recv afterwards; nil if nothing is received
}

// operator is a reduction of the tests.
type operator struct {
	name        string
	extent      int
	commutative bool
	apply       func(in, inout []byte) // computes inout = in op inout for any number of elements
}

// each returns an apply that uses f for single elements.
func each(extent int, f func(in, inout []byte)) func(in, inout []byte) {
	return func(in, inout []byte) {
		for i := 0; i < len(in); i += extent {
			f(in[i:i+extent], inout[i:i+extent])
		}
	}
}

func operators() []operator {
	return []operator{
		{"sum", 8, true, each(8, func(in, inout []byte) {
			binary.LittleEndian.PutUint64(inout, binary.LittleEndian.Uint64(in)+binary.LittleEndian.Uint64(inout))
		})},
		{"matrix product", 4, false, each(4, func(a, b []byte) { // 2×2 over the integers modulo 256
			p, q, r, s := a[0]*b[0]+a[1]*b[2], a[0]*b[1]+a[1]*b[3], a[2]*b[0]+a[3]*b[2], a[2]*b[1]+a[3]*b[3]
			b[0], b[1], b[2], b[3] = p, q, r, s
		})},
		{"float sum", 4, true, each(4, func(in, inout []byte) {
			f := func(b []byte) float32 { return math.Float32frombits(binary.LittleEndian.Uint32(b)) }
			binary.LittleEndian.PutUint32(inout, math.Float32bits(f(in)+f(inout)))
		})},
	}
}

// xor returns an operator that is fast on large buffers.
func xor() operator {
	return operator{"exclusive or", 8, true, func(in, inout []byte) { subtle.XORBytes(inout, inout, in) }}
}

func random(rng *rand.Rand, n int) []byte {
	b := make([]byte, n)
	rng.Read(b)
	return b
}

// scattered puts blocks into a buffer in a random order with gaps, or dense in order.
func scattered(rng *rand.Rand, counts []int64, dense bool) (displs []int64, size int64) {
	displs = make([]int64, len(counts))
	order := rng.Perm(len(counts))
	for i := range counts {
		r := i
		if !dense {
			r = order[i]
			size += int64(rng.Intn(3))
		}
		displs[r] = size
		size += counts[r]
	}
	return displs, size
}

// counts returns n counts of about m: all m if uniform, and otherwise uneven ones, some of them 0.
func counts(rng *rand.Rand, n, m int, uniform bool) []int64 {
	out := make([]int64, n)
	for i := range out {
		if out[i] = int64(m); !uniform {
			out[i] = int64(rng.Intn(2*m + 1))
			if rng.Intn(4) == 0 {
				out[i] = 0
			}
		}
	}
	return out
}

func poisoned(n int64) []byte {
	b := make([]byte, n)
	poison(b)
	return b
}

// newCall returns a call of a collective over n ranks with random data: m bytes (reductions:
// elements) per rank.
func newCall(rng *rand.Rand, op Op, n, m, root int, uniform, inPlace bool, o operator) call {
	c := call{make([]Args, n), make([][]byte, n)}
	for r := range c.args {
		c.args[r] = Args{Op: op, Root: root, Uniform: uniform, Count: m, Extent: o.extent, Commutative: o.commutative}
	}
	switch op {
	case OpBcast:
		data := random(rng, m)
		for r := range c.args {
			c.args[r].Recv, c.want[r] = poisoned(int64(m)), data
		}
		copy(c.args[root].Recv, data)
	case OpGatherv, OpAllgatherv:
		gathers(rng, &c, m, root, uniform, inPlace)
	case OpScatterv:
		k := counts(rng, n, m, uniform)
		a := &c.args[root]
		var size int64
		a.SendCounts = k
		a.SendDispls, size = scattered(rng, k, rng.Intn(2) == 0)
		a.Send = random(rng, int(size))
		for r := range c.args {
			c.args[r].Recv = poisoned(k[r])
			c.want[r] = bytes.Clone(block(a.Send, k[r], a.SendDispls[r]))
		}
		if inPlace {
			a.Recv = block(a.Send, k[root], a.SendDispls[root])
		}
	case OpAlltoallv:
		alltoalls(rng, &c, m, uniform)
	case OpReduce, OpAllreduce, OpReduceScatter, OpScan, OpExscan:
		reductions(rng, &c, m, root, uniform, inPlace, o)
	}
	return c
}

func gathers(rng *rand.Rand, c *call, m, root int, uniform, inPlace bool) {
	k := counts(rng, len(c.args), m, uniform)
	data := make([][]byte, len(k))
	for r := range data {
		data[r] = random(rng, int(k[r]))
		c.args[r].Send = data[r]
	}
	for r := range c.args {
		if a := &c.args[r]; a.Op == OpAllgatherv || r == root {
			a.RecvCounts = k
			var size int64
			a.RecvDispls, size = scattered(rng, k, rng.Intn(2) == 0)
			a.Recv, c.want[r] = poisoned(size), poisoned(size)
			for q := range data {
				copy(block(c.want[r], k[q], a.RecvDispls[q]), data[q])
			}
			if inPlace {
				a.Send = block(a.Recv, k[r], a.RecvDispls[r])
				copy(a.Send, data[r])
			}
		}
	}
}

func alltoalls(rng *rand.Rand, c *call, m int, uniform bool) {
	n := len(c.args)
	from := make([][]int64, n) // [receiver][sender]
	for r := range from {
		from[r] = make([]int64, n)
	}
	for s := range c.args {
		a := &c.args[s]
		a.SendCounts = counts(rng, n, m, uniform)
		var size int64
		a.SendDispls, size = scattered(rng, a.SendCounts, rng.Intn(2) == 0)
		a.Send = random(rng, int(size))
		for r := range n {
			from[r][s] = a.SendCounts[r]
		}
	}
	for r := range c.args {
		a := &c.args[r]
		a.RecvCounts = from[r]
		var size int64
		a.RecvDispls, size = scattered(rng, a.RecvCounts, rng.Intn(2) == 0)
		a.Recv, c.want[r] = poisoned(size), poisoned(size)
		for s := range n {
			copy(block(c.want[r], from[r][s], a.RecvDispls[s]), block(c.args[s].Send, from[r][s],
				c.args[s].SendDispls[r]))
		}
	}
}

func reductions(rng *rand.Rand, c *call, m, root int, uniform, inPlace bool, o operator) {
	n := len(c.args)
	total := m
	var k []int64
	if c.args[0].Op == OpReduceScatter {
		k, total = counts(rng, n, m, uniform), 0
		for _, e := range k {
			total += int(e)
		}
	}
	data := make([][]byte, n)
	for r := range data {
		data[r] = random(rng, total*o.extent)
		if o.name == "float sum" {
			for i := 0; i < len(data[r]); i += 4 {
				binary.LittleEndian.PutUint32(data[r][i:], math.Float32bits(rng.Float32()-0.5))
			}
		}
	}
	sum := func(to int) []byte { // combination of the ranks below to
		out := bytes.Clone(data[to-1])
		for r := to - 2; r >= 0; r-- {
			o.apply(data[r], out)
		}
		return out
	}
	at := int64(0)
	for r := range c.args {
		a := &c.args[r]
		a.Send, a.RecvCounts = bytes.Clone(data[r]), k
		size := int64(total * o.extent)
		switch a.Op {
		case OpReduce:
			if r != root {
				continue
			}
			c.want[r] = sum(n)
		case OpAllreduce:
			c.want[r] = sum(n)
		case OpScan:
			c.want[r] = sum(r + 1)
		case OpExscan:
			if c.want[r] = poisoned(size); r > 0 {
				c.want[r] = sum(r)
			} else if inPlace {
				c.want[r] = data[r]
			}
		case OpReduceScatter:
			size = k[r] * int64(o.extent)
			c.want[r] = sum(n)[at:][:size]
			at += size
		}
		if a.Recv = poisoned(size); inPlace {
			a.Recv = a.Send[:size]
		}
	}
}

// check compares the received data with the correct results. Float sums only have to be close, and
// equal where MPI's result is the same at several ranks.
func (c call) check(o operator) error {
	for r, want := range c.want {
		got := c.args[r].Recv
		if want == nil || bytes.Equal(got, want) {
			continue
		}
		if o.name != "float sum" || c.args[r].Op < OpReduce {
			return fmt.Errorf("rank %d received\n%x, want\n%x", r, head(got), head(want))
		}
		for i := 0; i < len(want); i += 4 {
			g, w := math.Float32frombits(binary.LittleEndian.Uint32(got[i:])),
				math.Float32frombits(binary.LittleEndian.Uint32(want[i:]))
			if d := math.Abs(float64(g - w)); !(d < 1e-5) {
				return fmt.Errorf("rank %d element %d is %g, want %g", r, i/4, g, w)
			}
		}
		if c.args[r].Op == OpAllreduce && !bytes.Equal(got, c.args[0].Recv) {
			return fmt.Errorf("rank %d has other bits than rank 0", r)
		}
	}
	return nil
}

func head(b []byte) []byte { return b[:min(len(b), 64)] }
