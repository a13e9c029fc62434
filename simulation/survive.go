package simulation

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/leidenzipper/zipper/collectives"
	"github.com/leidenzipper/zipper/internal/rma"
	"github.com/leidenzipper/zipper/mmpi/engine"
)

// survivor is the program of one rank in a job that goes on when a cluster is lost, written as
// programs for ULFM are: after an error all ranks that are left agree on that, shrink the
// communicator, and go on from the earliest round that one of them has not finished.
type survivor struct {
	*rank
	e      *engine.Engine
	c      *engine.Comm   // communicator of the ranks that are left
	round  int            // number of rounds that this rank has finished
	synced bool           // whether all ranks of c have the same round
	open   []*engine.Cell // operations that may be under way
	number int            // number of agreements on c
	window *engine.Window // window that may have to be freed
}

// errLoss is the error of an operation that a loss or a revocation has ended.
var errLoss = errors.New("a cluster is lost")

// errAgreed says that all ranks have agreed that one of them has errLoss.
var errAgreed = errors.New("another rank has failed")

// survive runs the program of a rank.
func (r *rank) survive() error {
	s := &survivor{rank: r, e: r.Engine, synced: true}
	var err error
	if s.c, err = r.Comm(); err != nil {
		return err
	}
	for {
		err := s.work()
		if err != nil && !errors.Is(err, errLoss) && !errors.Is(err, errAgreed) {
			return err
		}
		flag := int32(1)
		if err != nil {
			flag = 0
			if err := s.revoke(); err != nil {
				return err
			}
		}
		if err := s.settle(); err != nil {
			return err
		}
		if !errors.Is(err, errAgreed) {
			value, complete, err := s.agree(flag)
			if err != nil || value == 1 && complete {
				return err
			}
		}
		if err := s.shrink(); err != nil {
			return err
		}
	}
}

// revoke revokes the communicator, unless the program has only collectives: these end at all ranks
// by themselves.
func (s *survivor) revoke() error {
	if s.job.plan.Alone {
		return nil
	}
	return s.e.Revoke(s.c)
}

// loss returns errLoss for an error that a loss or a revocation causes, and other errors as they
// are.
func loss(err error) error {
	switch engine.CodeOf(err) {
	case engine.ErrProcFailed, engine.ErrProcFailedPending, engine.ErrRevoked:
		return errLoss
	}
	return err
}

// wait waits until an operation is done, and returns its error.
func (s *survivor) wait(c *engine.Cell) error {
	for spins := 0; !c.Done(); spins++ {
		if err := s.e.Err(); err != nil {
			return err
		}
		if spins < 4 {
			s.e.Progress(0)
		} else {
			s.e.Progress(time.Millisecond)
		}
	}
	s.job.moved()
	return c.Err()
}

// settle waits until no operation of the rank is under way any more.
func (s *survivor) settle() error {
	for _, c := range s.open {
		for errors.Is(loss(s.wait(c)), errLoss) && engine.Code(c.Error) == engine.ErrProcFailedPending {
			if err := s.e.Resume(c); err != nil {
				return err
			}
			s.e.Progress(time.Millisecond)
		}
		if err := s.e.Err(); err != nil {
			return err
		}
	}
	s.open = nil
	if w := s.window; w != nil {
		s.window = nil
		return w.Drop()
	}
	return nil
}

// agree agrees on a value. complete says that all losses are acknowledged.
func (s *survivor) agree(flag int32) (value int32, complete bool, err error) {
	var cell engine.Cell
	if err := s.e.Agree(s.c, flag, &cell); err != nil {
		return 0, false, err
	}
	s.job.agrees()
	if err := s.wait(&cell); err != nil && !errors.Is(loss(err), errLoss) {
		return 0, false, err
	}
	s.number++
	complete = engine.Code(cell.Error) == engine.OK
	s.says(fmt.Sprintf("agreement %d of %x", s.number, s.c.Context()), fmt.Sprintf("%x, complete %v", cell.Tag, complete))
	return cell.Tag, complete, nil
}

// shrink replaces the communicator by one of the ranks that are left, when all of them know of all
// losses.
func (s *survivor) shrink() error {
	for {
		var cell engine.Cell
		if err := s.e.Shrink(s.c, -1, &cell); err != nil {
			return err
		}
		s.job.agrees()
		if err := s.wait(&cell); err != nil {
			return fmt.Errorf("shrink: %w", err)
		}
		context, ranks, err := s.e.Shrunk(s.c, &cell)
		if err != nil {
			return err
		}
		s.says(fmt.Sprintf("communicator %x", context), fmt.Sprint(ranks))
		s.says(fmt.Sprintf("shrink %d of %x", s.number, s.c.Context()), fmt.Sprintf("%x", context))
		next, err := s.add(context, ranks)
		if err != nil {
			return err
		}
		s.e.AckFailed(s.c, len(s.e.Failed(s.c)))
		_, complete, err := s.agree(1)
		switch {
		case err != nil:
			return err
		case !complete: // another cluster was lost meanwhile
			if err := s.e.DropComm(next); err != nil {
				return err
			}
			continue
		}
		old := s.c
		s.c, s.synced, s.number = next, false, 0
		return s.e.DropComm(old)
	}
}

// add adds a communicator of some ranks of the current one.
func (s *survivor) add(context uint64, ranks []int32) (*engine.Comm, error) {
	var world, native []int32
	mine, local := -1, int32(0)
	own, _ := s.e.Place(s.Rank)
	for i, r := range ranks {
		v := s.c.Virtual(int(r))
		world = append(world, int32(v))
		if v == s.Rank {
			mine = i
		}
		if in, _ := s.e.Place(v); in == own {
			native = append(native, local)
			local++
		} else {
			native = append(native, engine.Remote)
		}
	}
	return s.e.AddComm(uintptr(context)+2, context, mine, world, native) // the first one's number is 1
}

// work runs the rounds that are left.
func (s *survivor) work() error {
	if !s.synced {
		if err := s.sync(); err != nil {
			return err
		}
	}
	for ; s.round < s.job.plan.Rounds; s.round++ {
		all := rand.New(rand.NewPCG(s.c.Context(), uint64(s.round)))
		if s.rand.IntN(3) == 0 {
			s.job.k.Sleep(time.Duration(s.rand.IntN(1 << (10 + s.rand.IntN(16)))))
		}
		var err error
		kind := all.IntN(10)
		switch {
		case kind < 2 && !s.job.plan.Alone:
			err = s.messages(all, false)
		case kind < 4 && !s.job.plan.Alone:
			err = s.messages(all, true)
		case kind < 7:
			err = s.collect(collectives.Op(all.IntN(int(collectives.OpExscan)+1)), 1+all.IntN(3000), all.IntN(s.c.Size()))
		case kind < 9:
			err = s.acknowledge()
		default:
			err = s.oneSided(all)
		}
		if err == nil && all.IntN(10) == 0 && s.c.Rank() == 0 && !s.job.plan.Alone {
			s.round++ // it must not do this again
			err = errLoss
		}
		if err != nil {
			return fmt.Errorf("round %d: %w", s.round, err)
		}
	}
	return nil
}

// acknowledge agrees on a value in which no rank has the bit of its own. Other ranks may agree with
// 0 meanwhile, because they have an error.
func (s *survivor) acknowledge() error {
	value, _, err := s.agree(^int32(1 << s.c.Rank()))
	switch {
	case err != nil:
		return err
	case value&(1<<s.c.Rank()) != 0:
		return wrongf("round %d: an agreement without this rank: %x", s.round, value)
	case value == 0:
		return errAgreed
	}
	return nil
}

// sync makes all ranks go on from the earliest round that one of them has not finished.
func (s *survivor) sync() error {
	n := s.c.Size()
	counts, displs := make([]int64, n), make([]int64, n)
	for i := range counts {
		counts[i], displs[i] = 1, int64(i)
	}
	args := engine.Coll{Args: collectives.Args{Op: collectives.OpAllgatherv, Send: []byte{byte(s.round)},
		Recv: make([]byte, n), RecvCounts: counts, RecvDispls: displs, Uniform: true}, Type: 7, Operator: 8}
	if err := s.run(args); err != nil {
		return err
	}
	for _, b := range args.Recv {
		s.round = min(s.round, int(b))
	}
	s.synced = true
	return nil
}

// run runs a collective.
func (s *survivor) run(args engine.Coll) error {
	cell := new(engine.Cell)
	if err := s.e.Collective(s.c, args, cell); err != nil {
		return err
	}
	s.open = append(s.open, cell)
	if err := loss(s.wait(cell)); err != nil {
		return fmt.Errorf("%v: %w", args.Op, err)
	}
	return nil
}

// collect runs a collective and checks its result.
func (s *survivor) collect(op collectives.Op, m, root int) error {
	args, want := collective(op, s.c.Size(), m, root, s.c.Rank())
	if err := s.run(args); err != nil {
		return err
	}
	if want != nil && !bytes.Equal(args.Recv, want) {
		return wrongf("%v of %d bytes: wrong result", op, m)
	}
	return nil
}

// body returns the content of a message of a round between two ranks.
func (s *survivor) body(from, to, size int) []byte {
	b := pattern(from*7+to*3+s.round, size)
	binary.LittleEndian.PutUint64(b, s.c.Context()+uint64(s.round))
	return b
}

// messages sends a message to each other rank, and receives one from each: by their ranks, or from
// any source.
func (s *survivor) messages(all *rand.Rand, wild bool) error {
	n, me := s.c.Size(), s.c.Rank()
	sizes := make([]int, n*n)
	for i := range sizes {
		sizes[i] = 8 + all.IntN(1+all.IntN(5000))
	}
	tag := 1 + s.round
	var recvs []*receive
	start := len(s.open)
	for _, o := range s.rand.Perm(n) {
		if o == me {
			continue
		}
		v := &receive{buf: make([]byte, 6000)}
		source := o
		if wild {
			source = engine.AnySource
		}
		if s.c.IsRemote(o) || wild || s.e.Shadowed(s.c, o, tag) {
			if err := s.e.Irecv(s.c, engine.KindP2P, v.buf, source, tag, &v.cell); err != nil {
				return err
			}
			recvs, s.open = append(recvs, v), append(s.open, &v.cell)
		}
		b := s.body(me, o, sizes[me*n+o])
		switch {
		case s.c.IsRemote(o):
			cell := new(engine.Cell)
			if err := s.e.Isend(s.c, engine.KindP2P, b, o, tag, s.rand.IntN(5) == 0, cell); err != nil {
				return err
			}
			s.open = append(s.open, cell)
		case wild:
			s.Native.Send(s.user(), s.c.LocalRank(o), tag, b)
		}
	}
	var failed error
	for _, c := range s.open[start:] {
		if err := loss(s.wait(c)); err != nil {
			if !errors.Is(err, errLoss) {
				return err
			}
			failed = err // the others may hang: the ranks that they need may have failed
			break
		}
	}
	for _, v := range recvs {
		if !v.cell.Done() || v.cell.Err() != nil {
			continue
		}
		from, b := int(v.cell.Source), v.buf[:v.cell.Bytes]
		if want := s.body(from, me, sizes[from*n+me]); !bytes.Equal(b, want) {
			return wrongf("round %d: a message of %d bytes from rank %d differs from that of %d", s.round, len(b), from, len(want))
		}
	}
	return failed
}

// user returns the number of the communicator in native MPI.
func (s *survivor) user() uintptr { return s.c.User }

// oneSided puts bytes into the next rank's window and checks those of the rank before.
func (s *survivor) oneSided(all *rand.Rand) error {
	n, me, size := s.c.Size(), s.c.Rank(), 8+all.IntN(2000)
	world := make([]int32, n)
	for i := range world {
		world[i] = int32(s.c.Virtual(i))
	}
	memory := make([]byte, size)
	// No other communicator has this context.
	context := s.c.Context() ^ uint64(s.round+1)<<56
	w, err := s.e.AddWindow(context, me, world, rma.Config{Unit: 1, Memory: memory})
	if err != nil {
		return err
	}
	s.window = w
	if err := s.collect(collectives.OpBarrier, 0, 0); err != nil {
		return err
	}
	call := func(f func(d *rma.Node, token any) error) error {
		cell := new(engine.Cell)
		s.open = append(s.open, cell)
		if err := w.Call(cell, f); err != nil {
			return err
		}
		return loss(s.wait(cell))
	}
	next := (me + 1) % n
	if err := call(func(d *rma.Node, token any) error { return d.Lock(next, rma.Exclusive, token) }); err != nil {
		return err
	}
	data := s.body(me, next, size)
	view := rma.View{Space: rma.Bytes(data), Layout: rma.Layout{Spans: []rma.Span{{Len: int64(size)}}, Count: 1}}
	put := new(engine.Cell)
	s.open = append(s.open, put)
	left, err := w.Operate(rma.Operation{Verb: rma.Put, Target: next, Data: view, There: view.Layout}, put)
	for ; err == nil && left != 0; left, err = w.More(left) {
		s.e.Progress(time.Millisecond)
	}
	if err == nil {
		err = loss(s.wait(put))
	}
	if err == nil {
		err = call(func(d *rma.Node, token any) error { return d.Unlock(next, token) })
	}
	if err == nil {
		err = s.collect(collectives.OpBarrier, 0, 0)
	}
	if err != nil {
		return err
	}
	if before := (me + n - 1) % n; !bytes.Equal(memory, s.body(before, me, size)) {
		return wrongf("round %d: the window does not have the bytes of rank %d", s.round, before)
	}
	s.open, s.window = nil, nil
	return w.Drop()
}
