// Package memnet is a network in memory for tests. Its links have a delay, a bounded buffer and, if
// wanted, reads and writes that move only a part. They can be cut and held up. Time is Go's, so
// inside a testing/synctest bubble a delay costs nothing and is exact.
//
// Callers can wait for links by their descriptors, as with any transport. These are eventfds, made
// when first requested. WaitRead and WaitWrite do the same in pure Go, and inside a synctest
// bubble.
//
// Sizes are in bytes. The errors of a cut link wrap ErrCut. A Network is safe for concurrent use, a
// Link like any transport.Link.
package memnet

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/leidenzipper/zipper/internal/transport"
)

// ErrCut is the error of a link that was cut.
var ErrCut = errors.New("memnet: link cut")

// errRefused means that there is no listener.
var errRefused = errors.New("memnet: connection refused")

// Options describe the links of a network.
type Options struct {
	Delay  time.Duration // time from a write until the reader sees it
	Buffer int           // bytes in flight in one direction before ErrAgain (64 KiB)
	// Partial, if not 0, is the seed of the sizes of reads and writes that move only a part of the
	// possible bytes.
	Partial uint64
	// Pieces, if not 0, makes the links transport.Lenders with that many places for pieces of
	// 140000 bytes in each direction.
	Pieces int
}

// Network connects dialers and listeners by address. It is safe for concurrent use.
type Network struct {
	opt       Options
	mu        sync.Mutex
	listeners map[string]*listener
	links     int
}

var _ transport.Dialer = (*Network)(nil)

// New returns a network without listeners.
func New(opt Options) *Network {
	return &Network{opt: opt, listeners: map[string]*listener{}}
}

// Listen accepts links at an address, which may be any word.
func (n *Network) Listen(addr string) (transport.Listener, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.listeners[addr] != nil {
		return nil, fmt.Errorf("memnet: address %q in use", addr)
	}
	l := &listener{n: n, addr: addr, incoming: make(chan *Link, 1024), closed: make(chan struct{})}
	n.listeners[addr] = l
	return l, nil
}

// Dial opens a link. Its concrete type is *Link, or *PieceLink if the network has pieces.
func (n *Network) Dial(ctx context.Context, addr string) (transport.Link, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	l := n.listeners[addr]
	if l == nil {
		return nil, fmt.Errorf("%w: %q", errRefused, addr)
	}
	n.links++
	opt := n.opt
	if opt.Partial != 0 {
		opt.Partial += uint64(n.links)
	}
	a, b := pair(opt, fmt.Sprintf("memnet %s", addr), fmt.Sprintf("memnet link %d", n.links))
	select {
	case l.incoming <- b:
		return n.dress(a), nil
	default:
		return nil, fmt.Errorf("%w: %q has a full backlog", errRefused, addr)
	}
}

// dress returns a link with the capabilities of the network's options.
func (n *Network) dress(l *Link) transport.Link {
	if n.opt.Pieces > 0 {
		return &PieceLink{l}
	}
	return l
}

// Pipe makes one link and returns both ends.
func Pipe(opt Options) (a, b *Link) { return pair(opt, "memnet pipe b", "memnet pipe a") }

func pair(opt Options, remoteA, remoteB string) (a, b *Link) {
	if opt.Buffer == 0 {
		opt.Buffer = 64 << 10
	}
	ab, ba := newPipe(opt, 1), newPipe(opt, 2)
	return &Link{in: ba, out: ab, remote: remoteA}, &Link{in: ab, out: ba, remote: remoteB}
}

func newPipe(opt Options, stream uint64) *pipe {
	p := &pipe{delay: opt.Delay, capacity: opt.Buffer, places: opt.Pieces, readable: -1, writable: -1}
	p.changed.L = &p.mu
	if opt.Partial != 0 {
		p.partial = rand.New(rand.NewPCG(opt.Partial, stream))
	}
	return p
}

type listener struct {
	n        *Network
	addr     string
	incoming chan *Link
	closed   chan struct{}
	once     sync.Once
}

func (l *listener) Accept() (transport.Link, error) {
	select {
	case <-l.closed: // also if links wait
		return nil, transport.ErrClosed
	default:
	}
	select {
	case link := <-l.incoming:
		return l.n.dress(link), nil
	case <-l.closed:
		return nil, transport.ErrClosed
	}
}

func (l *listener) Addr() string { return l.addr }

func (l *listener) Close() error {
	l.once.Do(func() {
		l.n.mu.Lock()
		delete(l.n.listeners, l.addr)
		l.n.mu.Unlock()
		close(l.closed)
		for {
			select {
			case link := <-l.incoming:
				link.Close()
			default:
				return
			}
		}
	})
	return nil
}
