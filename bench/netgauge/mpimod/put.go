//go:build openmpi || mpich

package mpimod

import (
	"fmt"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"

	"github.com/leidenzipper/zipper/bench/netgauge"
	"github.com/leidenzipper/zipper/mmpi"
)

// Each process's window has an inbox for each other process: one word in which that process puts
// the number of granules that it has taken from our inbox in its window, the flags, and a ring of
// granules. A message takes whole granules, one at least. Its flag is in the word of its first
// granule, with the start in the stream and the length. The flag is put when the message is known
// to be there.
const (
	granule     = 64 << 10
	granules    = 64
	reportAfter = granules / 4 // taken granules after which the sender gets the new number
	flagsAt     = 8
	ringAt      = flagsAt + 8*granules
	inboxSize   = ringAt + granule*granules
	putPatience = time.Minute
)

// putEndpoint moves messages by MPI_Put with a flag: they arrive without a call of the receiver.
type putEndpoint struct {
	w     *mmpi.Comm
	win   *mmpi.Window
	peers []putPeer
}

// putPeer counts granules since the start.
type putPeer struct {
	// reported is the part of taken that the peer has been sent.
	sent, taken, reported uint64
	// word is the word that is being put.
	word [8]byte
}

func openPut(w *mmpi.Comm) (netgauge.Endpoint, error) {
	win, err := mmpi.NewWindow(w, inboxSize*w.Size())
	if err != nil {
		return nil, err
	}
	return &putEndpoint{w, win, make([]putPeer, w.Size())}, nil
}

func (e *putEndpoint) Rank() int    { return e.w.Rank() }
func (e *putEndpoint) Size() int    { return e.w.Size() }
func (e *putEndpoint) Close() error { return e.win.Free() }

// inbox returns the offset of the inbox for messages from a process, the same on every process.
func inbox(from int) int { return from * inboxSize }

// need returns the number of granules of a message.
func need(bytes int) uint64 { return uint64(max(1, (bytes+granule-1)/granule)) }

// flag returns the flag of a message that starts at that granule, which is never 0.
func flag(start uint64, bytes int) uint64 { return (start+1)<<24 | uint64(bytes) }

func (e *putEndpoint) Send(to int, b []byte) error {
	p, n := &e.peers[to], need(len(b))
	credit := e.local(inbox(to))
	if err := e.until(to, "room", func() bool { return p.sent+n-credit.Load() <= granules }); err != nil {
		return err
	}
	at := int(p.sent%granules) * granule
	beforeWrap := min(len(b), granules*granule-at)
	ring := inbox(e.Rank()) + ringAt
	if err := e.win.Put(b[:beforeWrap], to, ring+at); err != nil {
		return err
	}
	if err := e.win.Put(b[beforeWrap:], to, ring); err != nil {
		return err
	}
	if err := e.win.Flush(to); err != nil {
		return err
	}
	err := e.putWord(to, inbox(e.Rank())+flagsAt+8*int(p.sent%granules), flag(p.sent, len(b)))
	p.sent += n
	return err
}

func (e *putEndpoint) Recv(from int, b []byte) error {
	p, n := &e.peers[from], need(len(b))
	at := int(p.taken % granules)
	arrived := e.local(inbox(from) + flagsAt + 8*at)
	if err := e.until(from, "a message", func() bool { return arrived.Load()>>24 == p.taken+1 }); err != nil {
		return err
	}
	if got := arrived.Load(); got != flag(p.taken, len(b)) {
		return fmt.Errorf("received %d bytes from rank %d instead of %d", got&(1<<24-1), from, len(b))
	}
	ring := e.win.Memory()[inbox(from)+ringAt:][:granule*granules]
	beforeWrap := copy(b, ring[at*granule:])
	copy(b[beforeWrap:], ring)
	if p.taken += n; p.taken-p.reported < reportAfter {
		return nil
	}
	p.reported = p.taken
	return e.putWord(from, inbox(e.Rank()), p.taken)
}

func (e *putEndpoint) putWord(to, at int, v uint64) error {
	word := e.peers[to].word[:]
	*(*uint64)(unsafe.Pointer(&word[0])) = v
	if err := e.win.Put(word, to, at); err != nil {
		return err
	}
	return e.win.Flush(to)
}

// local returns a word of this process's memory that others write.
func (e *putEndpoint) local(at int) *atomic.Uint64 {
	return (*atomic.Uint64)(unsafe.Pointer(&e.win.Memory()[at]))
}

func (e *putEndpoint) until(peer int, what string, there func() bool) error {
	var limit time.Time
	for spins := 1; !there(); spins++ {
		if err := e.win.Sync(); err != nil {
			return err
		}
		if spins%64 != 0 {
			continue
		}
		_, _, _ = syscall.RawSyscall(syscall.SYS_SCHED_YIELD, 0, 0, 0) // the peer may need this core
		if now := time.Now(); limit.IsZero() {
			limit = now.Add(putPatience)
		} else if now.After(limit) {
			return fmt.Errorf("no sign of %s from rank %d for %v: it has stopped, or the MPI library lost a put (MPICH 4.0 does between ranks of one host: set MPIR_CVAR_NOLOCAL=1)",
				what, peer, putPatience)
		}
	}
	return nil
}
