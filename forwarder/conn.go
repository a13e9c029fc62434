package forwarder

import (
	"crypto/ed25519"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"sync/atomic"
	"time"
	"unsafe"

	"go.uber.org/zap"
	"golang.org/x/sys/unix"

	"github.com/leidenzipper/zipper/handshake"
	"github.com/leidenzipper/zipper/transport"
	"github.com/leidenzipper/zipper/wire"
)

func ptr(e []unix.EpollEvent) unsafe.Pointer { return unsafe.Pointer(unsafe.SliceData(e)) }

var (
	errStopped = errors.New("the forwarder has stopped")
	errLinger  = errors.New("did not close in time")
)

// conn is one link. Its life: joining (member is nil) → running (member is set) → lingering (a last frame is on
// its way to the peer, whatever it sends is thrown away until it closes) → ended.
type conn struct {
	f    *Forwarder
	loop *loop
	link transport.Link
	slot int
	log  *zap.Logger
	out  output

	lender transport.Lender // the link, if it has large pieces
	piper  transport.Piper  // the link, if pipes take what comes and give what goes

	member  atomic.Pointer[member] // set when the job is complete
	joining *handshake.Acceptor    // guarded by f.mu: nil once the join is decided
	waiting *waiting               // guarded by f.mu: place in a job that gathers
	bridge  *bridge                // guarded by f.mu: the link is one to another forwarder
	bridger *handshake.Bridger     // guarded by f.mu: which has not been introduced yet

	// The rest belongs to the loop.
	input     input
	touched   bool // in loop.read
	ended     bool
	lingering bool
	departed  bool      // said Bye
	deadline  time.Time // of lingering, or of the Join
	heard     time.Time // last bytes
	pinged    bool      // since then
}

// member is a link's place in a running job.
type member struct {
	job    *job
	rank   uint32  // Nobody for a bridge
	bridge *bridge // nil for a rank
}

// start runs on the owner loop when the link is new.
func (c *conn) start() {
	c.heard = c.loop.now
	c.deadline = c.loop.now.Add(c.f.cfg.JoinTimeout)
	c.touch()
	var seed [ed25519.SeedSize]byte
	rand.Read(seed[:]) // never fails
	c.f.mu.Lock()
	defer c.f.mu.Unlock()
	if c.bridge != nil { // we have dialled: the other end begins
		c.deadline = time.Time{}
		return
	}
	c.joining = handshake.NewAcceptor(seed, c.f.cfg.Secret, c.f.cfg.NAT != nil)
	c.f.drive(c)
	if c.f.stopping {
		c.f.refuseLocked(c, wire.RefuseShutdown, "the forwarder is shutting down")
	}
}

// readable reads and handles what there is, within a fair share.
func (c *conn) readable() {
	if c.ended {
		return
	}
	c.touch()
	for range 4 {
		full, err := c.input.fill(c)
		if c.ended {
			return
		}
		switch {
		case err == nil && full:
			continue // more may be there
		case err == nil || err == transport.ErrAgain:
			return
		case errors.Is(err, io.EOF) && c.departed:
			c.end(nil)
		case errors.Is(err, io.EOF):
			c.end(errors.New("its process ended before the job was over"))
		default:
			c.end(err)
		}
		return
	}
}

// touch has the loop arm the link before it sleeps.
func (c *conn) touch() {
	if !c.touched {
		c.touched = true
		c.loop.read = append(c.loop.read, c)
	}
}

// flush writes what is queued.
func (c *conn) flush() {
	if !c.ended {
		c.out.flush(c.loop.vec)
	}
}

// bad ends the link because of what the peer sent; it is told why.
func (c *conn) bad(reason string) {
	if c.ended || c.lingering {
		return
	}
	c.log.Warn("link ended: bad frame", zap.String("reason", reason), zap.Object("peer", c))
	if m := c.f.malformed(c, reason); m != nil {
		c.linger(abortFrame(1, m.rank, reason))
		c.f.breach(c, m, reason)
	}
}

// linger sends a last frame and waits for the peer to close. Loop only.
func (c *conn) linger(frame []byte) {
	if c.ended || c.lingering {
		return
	}
	c.out.last(c.loop.one, frame)
	c.settle()
}

func (c *conn) settle() {
	c.lingering = true
	c.input.drop(c)
	c.deadline = c.loop.now.Add(c.f.cfg.Linger)
}

// tick looks at the clock.
func (c *conn) tick() {
	cfg, now := &c.f.cfg, c.loop.now
	switch idle := now.Sub(c.heard); {
	case c.lingering:
		if now.After(c.deadline) {
			c.end(errLinger)
		}
	case c.member.Load() == nil && !c.deadline.IsZero() && now.After(c.deadline):
		c.f.refuse(c, wire.RefuseTimeout, fmt.Sprintf("no Join within %v", cfg.JoinTimeout))
	case idle >= cfg.PeerTimeout && c.pinged:
		c.end(fmt.Errorf("no answer for %v", cfg.PeerTimeout))
	case c.pinged && c.unheard() >= cfg.Unreachable:
		c.end(fmt.Errorf("its host could not be reached for %v", cfg.Unreachable))
	case idle >= cfg.PingInterval && !c.pinged:
		c.pinged = true
		c.out.write(c.loop.one, wire.Nobody, frame(wire.TypePing), nil)
	}
}

// unheard is how long the network has not reached the other host, if it can tell.
func (c *conn) unheard() time.Duration {
	if l, ok := c.link.(transport.Listening); ok {
		d, _ := l.Unheard()
		return d
	}
	return 0
}

// end frees the link and tells the job. cause is nil for a clean end. Loop only.
func (c *conn) end(cause error) {
	if c.ended {
		return
	}
	c.ended = true
	c.out.close()
	c.input.drop(c)
	c.loop.remove(c)
	c.link.Close()
	c.f.ended(c, cause)
}

func (c *conn) broken() {
	c.loop.post(func() {
		c.out.mu.Lock()
		err := c.out.failure
		c.out.mu.Unlock()
		c.end(err)
	})
}

// armWrite is called with out.mu held, so that the link cannot be closed meanwhile by end.
func (c *conn) armWrite(on bool) {
	events, slot := uint32(unix.EPOLLIN), c.slot
	split := c.link.WriteFD() != c.link.FD()
	if split {
		events, slot = 0, slot|writeFlag
	}
	if on {
		events |= unix.EPOLLOUT
	}
	if err := c.loop.ctl(unix.EPOLL_CTL_MOD, c.link.WriteFD(), events, slot); err != nil {
		c.log.Error("cannot wait for a link to become writable", zap.Error(err))
		c.out.fail(err)
	}
}

// frame returns a frame without body between the two ends of a link.
func frame(t wire.Type) []byte {
	return wire.AppendFrame(nil, wire.Header{Type: t, Src: wire.Nobody, Dst: wire.Nobody}, nil)
}

func abortFrame(code int32, rank uint32, reason string) []byte {
	return wire.AppendFrame(nil, wire.Header{Type: wire.TypeAbort, Src: wire.Nobody, Dst: wire.Nobody}, &wire.Abort{Code: code, Rank: rank, Reason: reason})
}
