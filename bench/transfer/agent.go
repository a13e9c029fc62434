package transfer

import (
	"bufio"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"runtime"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/leidenzipper/zipper/mmpi/boot"
	"github.com/leidenzipper/zipper/mmpi/engine"
)

// maxMessage bounds what a session can make an agent allocate for one message, bytes.
const maxMessage = 1 << 30

// patience bounds one batch.
const patience = 2 * time.Minute

// Serve is an agent: it listens for other agents' streams on any free port and does what the session on r and w says until r ends.
func Serve(ctx context.Context, r io.Reader, w io.Writer) error {
	ln, err := net.Listen("tcp", ":0")
	if err != nil {
		return err
	}
	defer ln.Close()
	a := &agent{ctx: ctx, arrived: make(map[uint64]chan net.Conn)}
	go a.accept(ln)
	out := json.NewEncoder(w)
	if err := out.Encode(answer{Port: ln.Addr().(*net.TCPAddr).Port}); err != nil {
		return err
	}
	in := json.NewDecoder(bufio.NewReader(r))
	for {
		var q request
		if err := in.Decode(&q); err != nil {
			if errors.Is(err, io.EOF) {
				return nil
			}
			return err
		}
		x, err := a.do(q)
		if err != nil {
			x.Error = err.Error()
		}
		if err := out.Encode(x); err != nil {
			return err
		}
	}
}

type agent struct {
	ctx     context.Context
	engines []*peerEngine
	batch   *running
	player  *player

	mu      sync.Mutex
	arrived map[uint64]chan net.Conn // streams by message, from either side
}

type peerEngine struct {
	*engine.Engine
	comm *engine.Comm
}

// running is a batch between ready and go.
type running struct {
	batch
	conns []net.Conn     // of direct sends, by index
	recvs []*engine.Cell // of receives through forwarders, by index; nil if direct
}

func (a *agent) do(q request) (answer, error) {
	switch {
	case q.Join != nil:
		return answer{}, a.join(q.Join)
	case q.Ready != nil:
		return answer{}, a.ready(q.Ready)
	case q.Play != nil:
		return answer{}, a.rehearse(q.Play)
	case q.Go && a.player != nil:
		x := a.player
		a.player = nil
		return x.play()
	case q.Go:
		return a.run()
	case q.Leave:
		return answer{}, a.leave()
	case q.Drop && len(a.engines) > 0:
		last := a.engines[len(a.engines)-1]
		a.engines = a.engines[:len(a.engines)-1]
		return answer{}, last.Finish()
	case q.Copy:
		rate, err := copyRate()
		return answer{Rate: rate}, err
	}
	return answer{}, errors.New("an empty request")
}

func (a *agent) join(q *joinRequest) error {
	for _, job := range q.Jobs {
		size := 0
		for _, c := range job.Layout {
			if c.Name == job.Cluster {
				size = c.Size
			}
		}
		e, w, err := boot.Join(a.ctx, job, boot.Local{Rank: q.Rank, Size: size, TagUB: 1<<31 - 1, Library: "none", Host: q.Host},
			alone{fail: func(reason string) { fmt.Fprintln(os.Stderr, "zipper:", reason) }})
		if err != nil {
			return err
		}
		if e == nil {
			return errors.New("a job of one cluster needs no forwarder")
		}
		// To the engine everybody is remote: messages inside the cluster go as streams.
		world, native := make([]int32, w.Size()), make([]int32, w.Size())
		_, first := w.Place(w.Rank)
		for i := range world {
			world[i], native[i] = int32(i), engine.Remote
			if i >= first && i < first+size {
				native[i] = int32(i - first)
			}
		}
		comm, err := e.AddComm(1, engine.WorldContext, w.Rank, world, native)
		if err != nil {
			return err
		}
		a.engines = append(a.engines, &peerEngine{e, comm})
	}
	// An engine has two threads that sleep in system calls, each of which keeps its P until Go's monitor takes that away, which one with a long timer slack does late.
	runtime.GOMAXPROCS(max(runtime.GOMAXPROCS(0), 2*len(a.engines)+2))
	return nil
}

// ready connects streams and posts receives, so that go only moves data.
func (a *agent) ready(b *batch) error {
	r := &running{batch: *b, conns: make([]net.Conn, len(b.Sends)), recvs: make([]*engine.Cell, len(b.Receives))}
	for _, p := range append(append([]part(nil), b.Sends...), b.Receives...) {
		if p.Bytes < 1 || p.Bytes > maxMessage || p.Via < Direct || p.Via >= len(a.engines) {
			return fmt.Errorf("message %d of %d bytes by forwarder %d of %d", p.ID, p.Bytes, p.Via, len(a.engines))
		}
	}
	for i, p := range b.Sends {
		if p.Via != Direct {
			continue
		}
		c, err := net.DialTimeout("tcp", p.Addr, 10*time.Second)
		if err != nil {
			return err
		}
		if _, err := c.Write(binary.LittleEndian.AppendUint64(nil, uint64(p.ID))); err != nil {
			c.Close()
			return err
		}
		r.conns[i] = c
	}
	for i, p := range b.Receives {
		if p.Via == Direct {
			continue
		}
		e := a.engines[p.Via]
		r.recvs[i] = new(engine.Cell)
		if err := e.Irecv(e.comm, engine.KindP2P, make([]byte, p.Bytes), p.Peer, p.ID, r.recvs[i]); err != nil {
			return err
		}
	}
	a.batch = r
	return nil
}

// run moves the batch and times the receives.
func (a *agent) run() (answer, error) {
	r := a.batch
	if r == nil {
		return answer{}, errors.New("go without ready")
	}
	a.batch = nil
	begin := time.Now()
	var (
		wg   sync.WaitGroup
		mu   sync.Mutex
		x    answer
		errs []error
	)
	got := func(id int, err error) {
		t := time.Since(begin).Seconds()
		mu.Lock()
		defer mu.Unlock()
		if err != nil {
			errs = append(errs, fmt.Errorf("message %d: %w", id, err))
			return
		}
		x.Seconds = append(x.Seconds, timed{id, t})
	}
	failed := func(id int, err error) {
		if err != nil {
			got(id, err)
		}
	}
	largest := 1
	for _, p := range r.Sends {
		largest = max(largest, p.Bytes)
	}
	data := make([]byte, largest)
	waits := make([][]waiting, len(a.engines))
	for i, p := range r.Sends {
		if p.Via == Direct {
			wg.Go(func() {
				defer r.conns[i].Close()
				r.conns[i].SetDeadline(begin.Add(patience))
				_, err := r.conns[i].Write(data[:p.Bytes])
				failed(p.ID, err)
			})
			continue
		}
		e, cell := a.engines[p.Via], new(engine.Cell)
		if err := e.Isend(e.comm, engine.KindP2P, data[:p.Bytes], p.Peer, p.ID, false, cell); err != nil {
			got(p.ID, err)
			continue
		}
		waits[p.Via] = append(waits[p.Via], waiting{p.ID, cell, failed})
	}
	for i, p := range r.Receives {
		if p.Via == Direct {
			wg.Go(func() { got(p.ID, a.drain(p, begin.Add(patience))) })
			continue
		}
		waits[p.Via] = append(waits[p.Via], waiting{p.ID, r.recvs[i], got})
	}
	for k, list := range waits {
		if list != nil {
			wg.Go(func() { await(a.engines[k], list, begin.Add(patience)) })
		}
	}
	wg.Wait()
	used, err := processorTime(syscall.RUSAGE_SELF)
	x.CPU = used.Seconds()
	return x, errors.Join(append(errs, err)...)
}

// processorTime is what a process or thread has used so far.
func processorTime(who int) (time.Duration, error) {
	var use syscall.Rusage
	err := syscall.Getrusage(who, &use)
	return time.Duration(use.Utime.Nano() + use.Stime.Nano()), err
}

// waiting is an operation of an engine under way, and whom to tell of its end.
type waiting struct {
	id   int
	cell *engine.Cell
	over func(id int, err error)
}

func await(e *peerEngine, list []waiting, deadline time.Time) {
	for len(list) > 0 {
		e.Progress(10 * time.Millisecond)
		keep := list[:0]
		for _, x := range list {
			switch {
			case x.cell.Done():
				x.over(x.id, x.cell.Err())
			case time.Now().After(deadline):
				x.over(x.id, fmt.Errorf("not over after %v", patience))
			default:
				keep = append(keep, x)
			}
		}
		list = keep
	}
}

// drain receives a stream.
func (a *agent) drain(p part, deadline time.Time) error {
	select {
	case c := <-a.stream(uint64(p.ID)):
		defer c.Close()
		c.SetDeadline(deadline)
		n, err := io.CopyN(io.Discard, c, int64(p.Bytes))
		if err != nil {
			return fmt.Errorf("after %d bytes: %w", n, err)
		}
		return nil
	case <-time.After(time.Until(deadline)):
		return errors.New("nobody connected")
	}
}

// stream is where the connection of a message is handed over.
func (a *agent) stream(id uint64) chan net.Conn {
	a.mu.Lock()
	defer a.mu.Unlock()
	c := a.arrived[id]
	if c == nil {
		c = make(chan net.Conn, 1)
		a.arrived[id] = c
	} else {
		delete(a.arrived, id) // both sides have it
	}
	return c
}

func (a *agent) accept(ln net.Listener) {
	for {
		c, err := ln.Accept()
		if err != nil {
			return
		}
		go func() {
			var b [8]byte
			c.SetDeadline(time.Now().Add(10 * time.Second))
			if _, err := io.ReadFull(c, b[:]); err != nil {
				c.Close()
				return
			}
			select {
			case a.stream(binary.LittleEndian.Uint64(b[:])) <- c:
			default:
				c.Close() // a second one for the same message: not ours
			}
		}()
	}
}

// copyRate is how fast one thread copies what is too large for caches, bytes/s of processor time: others may run, too.
func copyRate() (float64, error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	from, to := make([]byte, 32<<20), make([]byte, 32<<20)
	clear(to[:copy(to, from)]) // the pages are there
	begin, err := processorTime(unix.RUSAGE_THREAD)
	now, bytes := begin, 0
	for err == nil && now-begin < 50*time.Millisecond {
		bytes += copy(to, from)
		now, err = processorTime(unix.RUSAGE_THREAD)
	}
	return float64(bytes) / (now - begin).Seconds(), err
}

func (a *agent) leave() error {
	errs := make([]error, len(a.engines))
	var wg sync.WaitGroup
	for i, e := range a.engines {
		wg.Go(func() { errs[i] = e.Finish() })
	}
	wg.Wait()
	a.engines = nil
	return errors.Join(errs...)
}
