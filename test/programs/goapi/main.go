//go:build openmpi || mpich

// Goapi exercises package mmpi: every kind of call once, with results that every rank checks by
// itself; rank 0 prints the results, which must be the same natively and zipped.
package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"sync"
	"time"

	"github.com/leidenzipper/zipper/cgo/mpi"
	"github.com/leidenzipper/zipper/mmpi"
)

var ctx = context.Background()

func main() {
	level := map[string]mmpi.Level{"serialized": mmpi.Serialized, "funneled": mmpi.Funneled,
		"multiple": mmpi.Multiple}[os.Args[1]]
	p, err := mmpi.Init(level)
	if err != nil {
		log.Fatal(err)
	}
	if _, err := mmpi.Init(level); err == nil {
		fail(p, errors.New("a second Init succeeded"))
	}
	for _, part := range []struct {
		name string
		run  func(*mmpi.Process) (any, error)
	}{{"point to point", pointToPoint}, {"together", together}, {"collectives", collectives}, {"operators", operators},
		{"windows", windows}, {"communicators", communicators}, {"errors", mistakes}, {"contexts", contexts}} {
		out, err := part.run(p)
		if err != nil {
			fail(p, fmt.Errorf("rank %d: %s: %w", p.World().Rank(), part.name, err))
		}
		if p.World().Rank() == 0 {
			fmt.Println(part.name, out)
		}
	}
	if level != mmpi.Funneled {
		if err := goroutines(p); err != nil {
			fail(p, err)
		}
	}
	if err := p.Finalize(); err != nil {
		log.Fatal(err)
	}
	mmpi.Exit(0)
}

func fail(p *mmpi.Process, err error) {
	fmt.Fprintln(os.Stderr, err)
	p.Abort(3)
}

func check[T comparable](what string, got, want T) error {
	if got != want {
		return fmt.Errorf("%s: %v instead of %v", what, got, want)
	}
	return nil
}

func first(errs ...error) error {
	for _, e := range errs {
		if e != nil {
			return e
		}
	}
	return nil
}

// celsius is a named type, which is sent as its underlying type.
type celsius float64

func pointToPoint(p *mmpi.Process) (any, error) {
	w := p.World()
	n, r := w.Size(), w.Rank()
	next, prev := (r+1)%n, (r+n-1)%n
	sum := 0
	for _, size := range []int{0, 1, 100, 10000, 300000} {
		out, in := make([]celsius, size), make([]celsius, size+1)
		for i := range out {
			out[i] = celsius(r*1000 + i)
		}
		st, err := mmpi.Sendrecv(ctx, w, out, next, 7, in, prev, 7)
		if err != nil {
			return nil, err
		}
		if err := first(check("source", st.Source, prev), check("tag", st.Tag, 7),
			check("bytes", st.Bytes, 8*size)); err != nil {
			return nil, err
		}
		for i := range size {
			if in[i] != celsius(prev*1000+i) {
				return nil, fmt.Errorf("element %d of %d is %v", i, size, in[i])
			}
		}
		sum += st.Bytes
	}
	// Wildcards: rank 0 takes one message of each.
	if r == 0 {
		seen := 1
		for range n - 1 {
			st, err := w.Probe(ctx, mmpi.AnySource, mmpi.AnyTag)
			if err != nil {
				return nil, err
			}
			b := make([]int32, st.Bytes/4)
			if st, err = mmpi.Recv(ctx, w, b, st.Source, st.Tag); err != nil {
				return nil, err
			}
			if err := first(check("length", len(b), st.Source), check("tag", st.Tag, 100+st.Source)); err != nil {
				return nil, err
			}
			seen += st.Source
		}
		return []int{sum, seen}, nil
	}
	q, err := mmpi.Issend(w, make([]int32, r), 0, 100+r)
	if err != nil {
		return nil, err
	}
	_, err = q.Wait(ctx)
	return nil, err
}

func collectives(p *mmpi.Process) (any, error) {
	w := p.World()
	n, r := w.Size(), w.Rank()
	if err := w.Barrier(); err != nil {
		return nil, err
	}
	b := []uint16{uint16(r), uint16(r)}
	all := make([]int64, n)
	parts := make([]int64, n*n)
	line := make([]int64, n)
	counts, displs := make([]int, n), make([]int, n)
	total := 0
	for i := range n {
		line[i] = int64(100*r + i)
		counts[i], displs[i] = i, total
		total += i
	}
	mine, one := make([]float32, r), make([]int64, 1)
	for i := range mine {
		mine[i] = float32(r)
	}
	gathered := make([]float32, total)
	swapped := make([]int64, n)
	if err := first(
		mmpi.Bcast(w, b, n-1), check("bcast", b[1], uint16(n-1)),
		mmpi.Allgather(w, []int64{int64(r * r)}, all),
		mmpi.Gather(w, line, parts, 0),
		mmpi.Scatter(w, parts, one, 0),
		mmpi.Allgatherv(w, mine, gathered, counts, displs),
		mmpi.Alltoall(w, line, swapped),
	); err != nil {
		return nil, err
	}
	for i := range n {
		if err := first(check("allgather", all[i], int64(i*i)), check("alltoall", swapped[i],
			int64(100*i+r))); err != nil {
			return nil, err
		}
	}
	scan, ex, red := []int64{0}, []int64{-1}, make([]int64, n)
	mineOfSum := []int64{0}
	ones := make([]int, n)
	for i := range ones {
		ones[i] = 1
	}
	if err := first(
		mmpi.Scan(w, []int64{int64(r)}, scan, mmpi.Sum), check("scan", scan[0], int64(r*(r+1)/2)),
		mmpi.Exscan(w, []int64{int64(r)}, ex, mmpi.Sum),
		mmpi.Reduce(w, line, red, mmpi.Max, 0),
		mmpi.ReduceScatter(w, line, mineOfSum, ones, mmpi.Sum),
		check("reduce_scatter", mineOfSum[0], int64(100*n*(n-1)/2+n*r)),
	); err != nil {
		return nil, err
	}
	if r > 0 {
		if err := check("exscan", ex[0], int64(r*(r-1)/2)); err != nil {
			return nil, err
		}
	}
	// Several nonblocking ones at once.
	x, y := []float64{float64(r)}, []float64{float64(r)}
	q1, err1 := mmpi.Iallreduce(w, nil, x, mmpi.Sum)
	q2, err2 := mmpi.Iallreduce(w, nil, y, mmpi.Prod)
	q3, err3 := w.Ibarrier()
	if err := first(err1, err2, err3); err != nil {
		return nil, err
	}
	err := mmpi.WaitAll(ctx, q3, q2, q1)
	return fmt.Sprint(all, gathered, red, x, y), err
}

func operators(p *mmpi.Process) (any, error) {
	w := p.World()
	// 2×2 matrices under multiplication: associative, not commutative.
	op, err := mmpi.NewOp(func(in, inout []int64) {
		for i := 0; i+3 < len(in); i += 4 {
			a, b := in[i:i+4], [4]int64(inout[i:i+4])
			inout[i], inout[i+1] = (a[0]*b[0]+a[1]*b[2])%1009, (a[0]*b[1]+a[1]*b[3])%1009
			inout[i+2], inout[i+3] = (a[2]*b[0]+a[3]*b[2])%1009, (a[2]*b[1]+a[3]*b[3])%1009
		}
	}, false)
	if err != nil {
		return nil, err
	}
	r := int64(w.Rank())
	m := []int64{r + 1, 2, 3, r + 4}
	out := make([]int64, 4)
	// In MPI elementwise operators may get any number of elements at once; whole matrices stay
	// together only because all four elements are one message.
	if err := mmpi.Allreduce(w, m, out, op); err != nil {
		return nil, err
	}
	if err := mmpi.Allreduce(w, []float64{1}, make([]float64, 1), op); err == nil {
		return nil, errors.New("an operator for int64 took float64")
	}
	return out, op.Free()
}

func communicators(p *mmpi.Process) (any, error) {
	w := p.World()
	r, n := w.Rank(), w.Size()
	d, err := w.Dup()
	if err != nil {
		return nil, err
	}
	s, err := w.Split(r%2, -r) // reversed
	if err != nil {
		return nil, err
	}
	v := []int64{int64(r)}
	if err := mmpi.Bcast(s, v, 0); err != nil {
		return nil, err
	}
	want := n - 1
	if want%2 != r%2 {
		want--
	}
	if err := check("first of the split", v[0], int64(want)); err != nil {
		return nil, err
	}
	none, err := w.Split(mmpi.Undefined, 0)
	if err != nil || none != nil {
		return nil, fmt.Errorf("split without a colour: %v, %v", none, err)
	}
	c, err := d.Create([]int{n - 1, 0})
	if n > 1 && err == nil && (r == 0 || r == n-1) {
		err = first(check("create", c.Size(), 2), c.Free())
	}
	h, err2 := w.SplitHost(r)
	if err := first(err, err2, h.Free(), s.Free(), d.Free()); err != nil {
		return nil, err
	}
	return fmt.Sprint(n, want), check("self", p.Self().Size(), 1)
}

func mistakes(p *mmpi.Process) (any, error) {
	w := p.World()
	var e *mpi.Error
	if err := mmpi.Send(w, []int8{1}, w.Size(), 0); !errors.As(err, &e) || e.Call == "" {
		return nil, fmt.Errorf("a send to a rank that does not exist: %v", err)
	}
	if err := mmpi.Gatherv(w, []int8{1}, nil, []int{1}, nil, w.Rank()); err == nil {
		return nil, errors.New("a gather with too few counts succeeded")
	}
	if err := mmpi.Allreduce(w, make([]int8, 2), make([]int8, 3), mmpi.Sum); err == nil {
		return nil, errors.New("a reduction of unequal slices succeeded")
	}
	if err := w.Barrier(); err != nil {
		return nil, err
	}
	// Truncation, across the clusters.
	last := w.Size() - 1
	if last == 0 {
		return "ok", nil
	}
	switch w.Rank() {
	case last:
		return nil, mmpi.Send(w, make([]int32, 8), 0, 3)
	case 0:
		_, err := mmpi.Recv(ctx, w, make([]int32, 4), last, 3)
		if !errors.As(err, &e) || !e.Truncated() {
			return nil, fmt.Errorf("a message twice as long as the buffer: %v", err)
		}
	}
	return "ok", nil
}

func contexts(p *mmpi.Process) (any, error) {
	w := p.World()
	short, cancel := context.WithTimeout(ctx, 20*time.Millisecond)
	defer cancel()
	if _, err := mmpi.Recv(short, w, make([]int8, 1), mmpi.AnySource, 4711); !errors.Is(err, context.DeadlineExceeded) {
		return nil, fmt.Errorf("a receive that nobody answers: %v", err)
	}
	if err := w.Barrier(); err != nil {
		return nil, err
	}
	// A cancelled receive gets nothing: the next message matches the next receive.
	next, prev := (w.Rank()+1)%w.Size(), (w.Rank()+w.Size()-1)%w.Size()
	in := make([]int8, 1)
	if _, err := mmpi.Sendrecv(ctx, w, []int8{int8(w.Rank())}, next, 4711, in, prev, 4711); err != nil {
		return nil, err
	}
	return "ok", check("after a cancelled receive", in[0], int8(prev))
}

// goroutines uses several goroutines at once, each with its own tag, in both directions.
func goroutines(p *mmpi.Process) error {
	w := p.World()
	peer := w.Size() - 1 - w.Rank()
	var wg sync.WaitGroup
	errs := make(chan error, 8)
	for g := range 8 {
		wg.Go(func() {
			for i := range 50 {
				in := make([]int64, 100)
				out := make([]int64, 100)
				out[99] = int64(g*1000 + i)
				if _, err := mmpi.Sendrecv(ctx, w, out, peer, g, in, peer, g); err != nil {
					errs <- err
					return
				}
				if in[99] != int64(g*1000+i) {
					errs <- fmt.Errorf("goroutine %d, message %d: %d", g, i, in[99])
					return
				}
			}
		})
	}
	wg.Wait()
	select {
	case err := <-errs:
		return err
	default:
		return nil
	}
}
