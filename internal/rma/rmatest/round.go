// Package rmatest has a round of one-sided communication that checks its own results, for tests and
// simulations of whole jobs.
package rmatest

import (
	"bytes"
	"fmt"

	"github.com/leidenzipper/zipper/internal/rma"
)

// Wrong is the error of an incorrect result.
type Wrong string

// Error describes the incorrect result.
func (w Wrong) Error() string { return string(w) }

func wrongf(format string, args ...any) error { return Wrong(fmt.Sprintf(format, args...)) }

// Round has the parameters of one process in a round, in which all processes take part. Its
// functions return when their operation is done.
type Round struct {
	Me, Processes int
	// Number is the number of the round. Size is the length of a piece in bytes, at most Space.
	Number, Size int
	Space        int                  // distance between pieces in Memory, in bytes
	Memory       []byte               // the process's window, of MemoryLen bytes
	To           func(origin int) int // target that a process locks
	Pattern      func(seed, size int) []byte

	Call    func(f func(d *rma.Node, token any) error) error
	Operate func(op rma.Operation) error
	Barrier func() error
}

// MemoryLen returns the number of bytes of each process's window.
func MemoryLen(processes, space int) int { return 2*processes*space + 1 }

func (r *Round) says(origin int) []byte { return r.Pattern(origin+r.Number*7, r.Size) }

func (r *Round) transfer(op rma.Operation, target int) error {
	op.Target = target
	op.There = op.Data.Layout
	if op.Verb == rma.Get {
		op.There = op.Result.Layout
	}
	return r.Operate(op)
}

func flat(b []byte) rma.View {
	return rma.View{Space: rma.Bytes(b), Layout: rma.Layout{Spans: []rma.Span{{Len: int64(len(b))}}, Count: 1}}
}

// Run puts, adds up and gets, between locks and between fences. The error is a Wrong, or an error
// of one of the functions.
func (r *Round) Run() error {
	n, me := r.Processes, r.Me
	clear(r.Memory)
	if err := r.Barrier(); err != nil {
		return err
	}
	target, got := r.To(me), make([]byte, r.Size)
	if err := r.Call(func(d *rma.Node, token any) error { return d.Lock(target, rma.How(r.Number%2)*rma.Exclusive, token) }); err != nil {
		return err
	}
	for _, op := range []rma.Operation{
		{Verb: rma.Put, Disp: int64(me * r.Space), Data: flat(r.says(me))},
		{Verb: rma.Accumulate, Disp: int64(2 * n * r.Space), Data: flat([]byte{byte(me + 1)})},
		{Verb: rma.Get, Disp: int64(me * r.Space), Result: flat(got)},
	} {
		if err := r.transfer(op, target); err != nil {
			return err
		}
	}
	if err := r.Call(func(d *rma.Node, token any) error { return d.Unlock(target, token) }); err != nil {
		return err
	}
	if !bytes.Equal(got, r.says(me)) {
		return Wrong("get: the data differ from the data that were put")
	}
	if err := r.Call(func(d *rma.Node, token any) error { return d.Fence(true, token) }); err != nil {
		return err
	}
	if err := r.Barrier(); err != nil {
		return err
	}
	for to := range n {
		if err := r.transfer(rma.Operation{Verb: rma.Put, Disp: int64((n + me) * r.Space), Data: flat(r.says(me + to))},
			to); err != nil {
			return err
		}
	}
	if err := r.Call(func(d *rma.Node, token any) error { return d.Fence(false, token) }); err != nil {
		return err
	}
	if err := r.Barrier(); err != nil {
		return err
	}
	sum := byte(0)
	for origin := range n {
		if r.To(origin) == me {
			sum += byte(origin + 1)
			if !bytes.Equal(r.Memory[origin*r.Space:][:r.Size], r.says(origin)) {
				return wrongf("the data that rank %d has put between locks are missing", origin)
			}
		}
		if !bytes.Equal(r.Memory[(n+origin)*r.Space:][:r.Size], r.says(origin+me)) {
			return wrongf("the data that rank %d has put between fences are missing", origin)
		}
	}
	if r.Memory[2*n*r.Space] != sum {
		return wrongf("the sum is %d, not %d", r.Memory[2*n*r.Space], sum)
	}
	return r.Barrier()
}
