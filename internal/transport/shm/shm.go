// Package shm is the transport between processes of one host: a ring in shared memory for each
// direction.
//
// The listener waits at a unix socket. For each link it makes a memfd with two rings and four
// eventfds, and sends them over the socket. After that the socket only shows when a process has
// died. An end wakes its peer through the peer's eventfd, and only if the peer has said that it
// sleeps. Processes that may open the socket's path are trusted not to disturb the eventfds. The
// content of the rings is not trusted.
//
// Addresses are paths, sizes are in bytes. Errors name the path, or the peer's process. Concurrency
// is that of transport.Link.
package shm

import (
	"fmt"
	"io"
	"os"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/leidenzipper/zipper/internal/transport"
	"github.com/leidenzipper/zipper/internal/transport/internal/evfd"
	"github.com/leidenzipper/zipper/internal/transport/internal/fdref"
	"github.com/leidenzipper/zipper/internal/transport/internal/iovec"
)

// link is one end of a link.
type link struct {
	ref    fdref.Ref
	mem    []byte
	conn   *os.File // the unix socket
	remote string

	in, out ring
	// This end waits on data of the in ring and room of the out ring. The other two descriptors are
	// the peer's.
	data, room         evfd.FD
	peerData, peerRoom evfd.FD

	armed bool        // reader: the data descriptor may be raised
	dead  atomic.Bool // the peer has closed
}

var _ transport.Listening = (*link)(nil)

// newLink creates an end of a link, which owns the memory, the descriptors and the connection.
func newLink(mem []byte, inFirst bool, fds [4]evfd.FD, conn *os.File, remote string) *link {
	half := len(mem) / 2
	l := &link{mem: mem, conn: conn, remote: remote, in: newRing(mem[:half]), out: newRing(mem[half:])}
	// fds has data and room of the first ring, then data and room of the second.
	l.data, l.peerRoom, l.peerData, l.room = fds[0], fds[1], fds[2], fds[3]
	if !inFirst {
		l.in, l.out = l.out, l.in
		l.data, l.peerRoom, l.peerData, l.room = fds[2], fds[3], fds[0], fds[1]
	}
	l.ref.Free = l.free
	go l.watch()
	return l
}

// watch waits for the peer's end. The socket no longer carries data.
func (l *link) watch() {
	var b [1]byte
	_, _ = l.conn.Read(b[:]) // any result means that the peer has closed, or is faulty
	if !l.ref.Acquire() {
		return
	}
	l.dead.Store(true)
	l.data.Raise()
	l.room.Lower()
	l.ref.Release()
}

// hangUp wakes watch at both ends, also if a forked process has the socket, too.
func (l *link) hangUp() {
	raw, err := l.conn.SyscallConn()
	if err == nil {
		_ = raw.Control(func(s uintptr) { _ = unix.Shutdown(int(s), unix.SHUT_RDWR) }) // the peer may have closed
	}
}

func (l *link) free() {
	l.hangUp()
	l.conn.Close()
	for _, fd := range []evfd.FD{l.data, l.room, l.peerData, l.peerRoom} {
		fd.Close()
	}
	unix.Munmap(l.mem)
}

func (l *link) TryRead(p []byte) (int, error) {
	if !l.ref.Acquire() {
		return 0, transport.ErrClosed
	}
	n, err := l.read(p)
	l.ref.Release()
	return n, err
}

func (l *link) read(p []byte) (int, error) {
	dead := l.dead.Load() // loaded before the ring is read, so that bytes written before the end are still read
	n, err := l.in.read(p)
	if n == 0 && err == nil && l.armed && !dead {
		l.data.Lower()
		l.armed = false
		if l.dead.Load() { // its signal must stay
			l.data.Raise()
		}
		n, err = l.in.read(p)
	}
	switch {
	case err != nil:
		return 0, err
	case n == 0 && dead:
		return 0, io.EOF
	case n == 0:
		return 0, transport.ErrAgain
	}
	if l.in.full.Load() == 1 && l.in.full.CompareAndSwap(1, 0) {
		l.peerRoom.Lower()
	}
	return n, nil
}

func (l *link) TryWrite(bufs ...[]byte) (int, error) {
	if !l.ref.Acquire() {
		return 0, transport.ErrClosed
	}
	n, err := l.write(bufs)
	l.ref.Release()
	return n, err
}

func (l *link) write(bufs [][]byte) (int, error) {
	if l.dead.Load() {
		return 0, fmt.Errorf("write %s: %w", l.remote, unix.EPIPE)
	}
	n, err := l.out.write(bufs)
	if err != nil {
		return 0, err
	}
	if n == 0 && !iovec.Empty(bufs) {
		// The ring is full: block the descriptor, tell the reader, and look again, because the
		// reader may have missed it.
		l.room.Block()
		l.out.full.Swap(1)
		n, err = l.out.write(bufs)
		if err != nil || n > 0 || l.dead.Load() {
			l.out.full.Store(0)
			l.room.Lower()
		}
		if n == 0 && err == nil {
			return 0, transport.ErrAgain
		}
	}
	if n > 0 && l.out.sleeping.Load() == 1 && l.out.sleeping.CompareAndSwap(1, 0) {
		l.peerData.Raise()
	}
	return n, err
}

func (l *link) Arm() bool {
	if !l.ref.Acquire() {
		return true
	}
	defer l.ref.Release()
	l.armed = true
	l.in.sleeping.Swap(1)
	if _, _, n, err := l.in.used(); n > 0 || err != nil || l.dead.Load() {
		l.in.sleeping.Store(0)
		return true
	}
	return false
}

func (l *link) FD() int                        { return int(l.data) }
func (l *link) WriteFD() int                   { return int(l.room) }
func (l *link) Unheard() (time.Duration, bool) { return 0, true } // the peer is on the same host
func (l *link) Remote() string                 { return l.remote }

func (l *link) Close() error {
	l.ref.Close() // first, so that watch does not take the close of this end for the peer's
	l.hangUp()    // at once, also while other calls are running
	return nil
}
