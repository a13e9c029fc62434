//go:build rdma && cgo

package verbs

import (
	"errors"
	"fmt"
	"io"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/leidenzipper/zipper/cgo/verbs"
	"github.com/leidenzipper/zipper/internal/transport"
	"github.com/leidenzipper/zipper/internal/transport/internal/evfd"
	"github.com/leidenzipper/zipper/internal/transport/internal/fdref"
	"github.com/leidenzipper/zipper/internal/transport/internal/iovec"
)

// link is one end of a link. Reader and writer only share the cause of a failure.
type link struct {
	ref     fdref.Ref
	d       *device
	place   Place
	control control
	remote  string
	mem     []byte // memory of both rings
	arena   *arena // blocks that the peer writes to

	// The receiving queue pair has a protection domain of its own, so that the peer can write to
	// this link's blocks and to no other memory.
	pd     *verbs.PD
	window *verbs.MR // registration of the arena in that domain

	in  reader
	out writer

	// sources and targets are the program's memory, to send from and to receive into.
	sources, targets regions

	room   evfd.FD // writable when TryWrite may make progress
	credit *waiter // waits for completions of out, on behalf of a writer that waits for room

	cause   atomic.Pointer[error] // cause of the link's end: io.EOF or a failure
	closing chan struct{}         // closed when no call uses the link any more
	watched chan struct{}         // closed when watch has returned
}

var _ transport.Listening = (*link)(nil)

// run starts the helper goroutines of a connected link.
func (l *link) run() {
	l.closing, l.watched = make(chan struct{}), make(chan struct{})
	go l.watch()
	go l.keep()
}

// watch waits for the end of the connection over which the link was made.
func (l *link) watch() {
	defer close(l.watched)
	cause := l.control.end()
	if cause != io.EOF {
		cause = fmt.Errorf("%s: %w", l.remote, cause)
	}
	l.fail(cause)
}

// fail ends the link. The first cause stays. Posted receives are flushed, which wakes a sleeping
// reader.
func (l *link) fail(cause error) {
	if !l.cause.CompareAndSwap(nil, &cause) {
		return
	}
	// An error means that the device has disappeared: then there is nothing to flush.
	_, _ = l.in.qp.Fail(), l.out.qp.Fail()
	l.room.Lower()
}

// broken makes a failure of one half the failure of the link.
func (l *link) broken(err error) {
	if errors.Is(err, verbs.RetryExceeded) {
		err = fmt.Errorf("the peer does not answer any more: %w", err)
	}
	l.fail(fmt.Errorf("%s: %w", l.remote, err))
}

// failed calls broken and returns the link's cause.
func (l *link) failed(err error) error {
	l.broken(err)
	return *l.cause.Load()
}

// keep lowers room when credit arrives, and frees everything at the end.
func (l *link) keep() {
	for {
		if err := l.credit.wait(l.out.ch.Event); err != nil { // stopped, or the device has disappeared
			break
		}
		if err := l.out.event(); err != nil {
			l.broken(err)
		}
		l.room.Lower()
	}
	<-l.closing
	l.flush()
	_ = l.control.close() // there is no caller left for an error
	<-l.watched
	_ = l.destroy()
}

// flush waits until the peer's adapter has received all written bytes.
func (l *link) flush() {
	l.credit.until(time.Now().Add(flushLimit))
	for l.out.completed < l.out.posted && l.cause.Load() == nil {
		some, err := l.out.poll()
		if err != nil {
			return
		}
		if some {
			continue
		}
		if l.out.cq.Notify(false) != nil {
			return
		}
		if some, err = l.out.poll(); err != nil {
			return
		}
		if !some && l.credit.wait(l.out.ch.Event) != nil {
			return
		}
	}
}

// destroy frees all parts, also after an open that failed half-way.
func (l *link) destroy() error {
	l.d.remove(l)
	errs := []error{l.in.close(), l.out.close(), l.sources.close(), l.targets.close()}
	if l.window != nil {
		errs = append(errs, l.window.Close())
	}
	if l.pd != nil {
		errs = append(errs, l.pd.Close())
	}
	for _, b := range l.out.lent {
		if b != nil {
			b.Release()
		}
	}
	for _, a := range []*arena{l.arena, l.out.own} {
		if a != nil {
			errs = append(errs, a.release())
		}
	}
	if l.mem != nil {
		errs = append(errs, unix.Munmap(l.mem))
	}
	if l.credit != nil {
		errs = append(errs, l.credit.close())
	}
	if l.room >= 0 {
		l.room.Close()
	}
	return errors.Join(append(errs, l.d.release())...)
}

func (l *link) free() {
	l.credit.stop()
	close(l.closing)
}

func (l *link) TryRead(p []byte) (int, error) {
	if !l.ref.Acquire() {
		return 0, transport.ErrClosed
	}
	n, err := l.read(p)
	l.ref.Release()
	return n, err
}

func (l *link) read(p []byte) (n int, err error) {
	err = l.get(func() (bool, error) {
		n, err = l.in.read(p)
		return n > 0, err
	})
	if n > 0 {
		return n, nil // the next call returns an error
	}
	return 0, err
}

// get calls look of the reader, and once more if an event arrives in between.
func (l *link) get(look func() (got bool, err error)) error {
	cause := l.cause.Load() // loaded before look, so that messages from before the end are still read
	got, err := look()
	if !got && err == nil && l.in.armed {
		var taken bool
		if taken, err = l.in.disarm(); taken {
			got, err = look()
		}
	}
	switch {
	case err != nil:
		return l.failed(err)
	case got:
		return nil
	case cause != nil && (*cause != io.EOF || l.in.flushed):
		return *cause
	}
	// After the peer's close the flushed receives follow all messages. They, not the control, are
	// the end.
	return transport.ErrAgain
}

func (l *link) TryWrite(bufs ...[]byte) (int, error) {
	if !l.ref.Acquire() {
		return 0, transport.ErrClosed
	}
	n, err := l.write(bufs)
	l.ref.Release()
	return n, err
}

func (l *link) write(bufs [][]byte) (n int, err error) {
	err = l.put(func() (bool, error) {
		n, err = l.out.send(bufs)
		return n > 0 || iovec.Empty(bufs), err
	})
	if n > 0 {
		return n, nil // the next call returns an error
	}
	return 0, err
}

// put calls do of the writer, unless the writer is full.
func (l *link) put(do func() (done bool, err error)) error {
	if c := l.cause.Load(); c != nil {
		return l.unwritable(*c)
	}
	l.out.mu.Lock()
	defer l.out.mu.Unlock()
	done, err := do()
	if !done && err == nil {
		// The writer is full: block the descriptor, ask for an event, and look again, because one
		// may have been missed.
		l.room.Block()
		if err = l.out.notify(); err == nil {
			done, err = do()
		}
		if done || err != nil || l.cause.Load() != nil {
			l.room.Lower()
		}
	}
	switch {
	case err != nil:
		return l.unwritable(l.failed(err))
	case !done:
		return transport.ErrAgain
	}
	return nil
}

func (l *link) unwritable(cause error) error {
	if cause == io.EOF {
		return fmt.Errorf("write %s: %w", l.remote, unix.EPIPE)
	}
	return cause
}

func (l *link) Arm() bool {
	if !l.ref.Acquire() {
		return true
	}
	defer l.ref.Release()
	if err := l.in.arm(); err != nil {
		l.broken(err)
		return true
	}
	if l.in.head == l.in.tail {
		if err := l.in.poll(); err != nil {
			l.broken(err)
			return true
		}
	}
	c := l.cause.Load()
	return l.in.head != l.in.tail || c != nil && (*c != io.EOF || l.in.flushed)
}

// Unheard never knows, because an adapter without answers gives up by itself, after about 2 s with
// the default Timeout. But a link without writes only notices that when it asks. This call does so,
// and ends the link in that case.
func (l *link) Unheard() (time.Duration, bool) {
	if !l.ref.Acquire() {
		return 0, false
	}
	defer l.ref.Release()
	l.out.mu.Lock()
	_, err := l.out.poll()
	l.out.mu.Unlock()
	if err != nil {
		l.broken(err)
	}
	return 0, false
}

func (l *link) FD() int        { return l.in.ch.FD() }
func (l *link) WriteFD() int   { return int(l.room) }
func (l *link) Remote() string { return l.remote }

func (l *link) Close() error {
	l.ref.Close()
	return nil
}
