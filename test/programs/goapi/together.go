//go:build openmpi || mpich

package main

import (
	"errors"
	"fmt"

	"github.com/leidenzipper/zipper/cgo/mpi"
	"github.com/leidenzipper/zipper/mmpi"
)

// together waits for more requests at once than one call of MPI takes: some are nil, some have
// completed, one occurs twice, one fails.
func together(p *mmpi.Process) (any, error) {
	const many, short = 150, 70 // the buffer of request short is too short
	w := p.World()
	n, r := w.Size(), w.Rank()
	next, prev := (r+1)%n, (r+n-1)%n
	if err := w.Barrier(); err != nil { // rank 0 takes any message until now
		return nil, err
	}
	var all []*mmpi.Request
	in := make([][]int32, many)
	for i := range many {
		in[i] = make([]int32, i+1)
		if i == short {
			in[i] = in[i][:i]
		}
		q, err := mmpi.Irecv(w, in[i], prev, i)
		if err != nil {
			return nil, err
		}
		all = append(all, q)
	}
	for i := many - 1; i >= 0; i-- { // the first receive is the last to be done
		out := make([]int32, i+1)
		for k := range out {
			out[k] = int32(r*many + i)
		}
		q, err := mmpi.Isend(w, out, next, i)
		if err == nil && i%2 == 0 {
			_, err = q.Wait(ctx)
		}
		if err != nil {
			return nil, err
		}
		all = append(all, q, nil)
	}
	all = append(all, all[3])
	err := mmpi.WaitAll(ctx, all...)
	var e *mpi.Error
	if !errors.As(err, &e) || !e.Truncated() {
		return nil, fmt.Errorf("WaitAll with a message that is too long: %v", err)
	}
	for i, q := range all[:many] {
		st, done, err := q.Test()
		if i == short {
			if err == nil || !done {
				return nil, fmt.Errorf("the message that is too long: done %v, %v", done, err)
			}
			continue
		}
		if err := first(err, check("done", done, true), check("source", st.Source, prev), check("tag", st.Tag, i),
			check("bytes", st.Bytes, 4*(i+1))); err != nil {
			return nil, err
		}
		for _, v := range in[i] {
			if v != int32(prev*many+i) {
				return nil, fmt.Errorf("message %d has %d", i, v)
			}
		}
	}
	return len(all), nil
}
