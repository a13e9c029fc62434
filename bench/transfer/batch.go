package transfer

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/leidenzipper/zipper/mmpi/engine"
)

// running is a batch between ready and go.
type running struct {
	batch
	// conns has the streams of direct sends, by index.
	conns []net.Conn
	// recvs has the receives through forwarders, by index; nil for direct ones.
	recvs []*engine.Cell
	// data is the content of every message, because no program reads it.
	data []byte
}

// ready connects streams and posts receives, so that go only moves data.
func (m *mover) ready(b *batch) error {
	r := &running{batch: *b, conns: make([]net.Conn, len(b.Sends)), recvs: make([]*engine.Cell, len(b.Receives))}
	for _, p := range append(append([]part(nil), b.Sends...), b.Receives...) {
		if p.Bytes < 1 || p.Bytes > maxMessage || p.Via < Direct || p.Via >= len(m.engines) {
			return fmt.Errorf("message %d: cannot send %d bytes by forwarder %d of %d", p.ID, p.Bytes, p.Via, len(m.engines))
		}
	}
	for i, p := range b.Sends {
		if p.Via != Direct {
			continue
		}
		c, err := net.DialTimeout("tcp", p.Addr, streamPatience)
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
		e := m.engines[p.Via]
		r.recvs[i] = new(engine.Cell)
		if err := e.Irecv(e.comm, engine.KindP2P, make([]byte, p.Bytes), p.Peer, p.ID, r.recvs[i]); err != nil {
			return err
		}
	}
	largest := 1
	for _, p := range r.Sends {
		largest = max(largest, p.Bytes)
	}
	r.data = make([]byte, largest)
	m.batch = r
	return nil
}

// run moves the batch from a moment on (0: at once) and times the receives.
func (m *mover) run(at int64) (answer, error) {
	r := m.batch
	if r == nil {
		return answer{}, errors.New("go before ready")
	}
	m.batch = nil
	if at > 0 {
		until(at)
	}
	begin := time.Now()
	var (
		wg   sync.WaitGroup
		mu   sync.Mutex
		x    = answer{Began: moment()}
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
	data := r.data
	waits := make([][]waiting, len(m.engines))
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
		e, cell := m.engines[p.Via], new(engine.Cell)
		if err := e.Isend(e.comm, engine.KindP2P, data[:p.Bytes], p.Peer, p.ID, false, cell); err != nil {
			got(p.ID, err)
			continue
		}
		waits[p.Via] = append(waits[p.Via], waiting{p.ID, cell, failed})
	}
	for i, p := range r.Receives {
		if p.Via == Direct {
			wg.Go(func() { got(p.ID, m.drain(p, begin.Add(patience))) })
			continue
		}
		waits[p.Via] = append(waits[p.Via], waiting{p.ID, r.recvs[i], got})
	}
	for k, list := range waits {
		if list != nil {
			wg.Go(func() { await(m.engines[k], list, begin.Add(patience)) })
		}
	}
	wg.Wait()
	used, err := processorTime(unix.CLOCK_PROCESS_CPUTIME_ID)
	x.CPU = used.Seconds()
	return x, errors.Join(append(errs, err)...)
}

// waiting is an operation of an engine in progress, with the function to call at its end.
type waiting struct {
	id   int
	cell *engine.Cell
	over func(id int, err error)
}

func await(e *peerEngine, list []waiting, deadline time.Time) {
	for len(list) > 0 {
		e.Progress(batchTurn)
		keep := list[:0]
		for _, x := range list {
			switch {
			case x.cell.Done():
				x.over(x.id, x.cell.Err())
			case time.Now().After(deadline):
				x.over(x.id, fmt.Errorf("not finished after %v", patience))
			default:
				keep = append(keep, x)
			}
		}
		list = keep
	}
}
