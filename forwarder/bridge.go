package forwarder

import (
	"errors"
	"fmt"

	"go.uber.org/zap"

	"github.com/leidenzipper/zipper/wire"
)

// bridge is the link to another forwarder for one job of several hops. Frames between ranks come and go on it as on a rank's link: the job's table has
// it for all ranks that lie behind it. It ends with Bye from both ends: each says it when all ranks that could send something through it have left.
type bridge struct {
	job     *job
	zipper  int    // the other end
	cluster int    // the network that both are on
	addr    string // the other end's, as known on it
	conn    *conn
	ranks   int // that lie behind it

	said, heard bool // Bye; guarded by Forwarder.mu
}

// allowed checks a header that comes over the bridge of a running job.
func (br *bridge) allowed(h *wire.Header) error {
	if !h.Type.BetweenRanks() {
		switch h.Type {
		case wire.TypeAbort, wire.TypeBye, wire.TypePing, wire.TypePong, wire.TypeReady: // Ready: the same by another way
			return nil
		case wire.TypeRailState:
			if br.job.gather.Rails() > 1 {
				return nil
			}
		}
		return fmt.Errorf("%v frame over a link between forwarders", h.Type)
	}
	n := uint32(len(br.job.table))
	if h.Src >= n || br.job.via[h.Src] != br {
		return fmt.Errorf("%v frame with source %d, which is not behind that link", h.Type, h.Src)
	}
	if h.Dst >= n || br.job.via[h.Dst] == br {
		return fmt.Errorf("%v frame for rank %d, which is not here", h.Type, h.Dst)
	}
	return nil
}

// bridgeControl handles a frame for this forwarder over the bridge of a running job. Loop only.
func (c *conn) bridgeControl(br *bridge, h *wire.Header, body []byte) {
	switch h.Type {
	case wire.TypeBye:
		c.departed = true
		c.f.mu.Lock()
		br.heard = true
		c.f.sayBye(br.job)
		over := br.said
		c.f.mu.Unlock()
		if over {
			c.part()
		}
	case wire.TypeAbort:
		a, err := wire.ParseAbort(body)
		if err != nil {
			c.bad(err.Error())
			return
		}
		c.f.mu.Lock()
		c.f.fail(br.job, a.Code, a.Rank, a.Reason, c)
		c.f.mu.Unlock()
		c.end(fmt.Errorf("the job was aborted: %s", a.Reason))
	case wire.TypeRailState:
		s, err := wire.ParseRailState(body)
		if err == nil && (s.Up || int64(s.Rank) >= int64(len(br.job.via)) || br.job.via[s.Rank] != br) {
			err = fmt.Errorf("RailState of rank %d (up: %v), which is not behind that link", s.Rank, s.Up)
		}
		if err != nil {
			c.bad(err.Error())
			return
		}
		c.f.mu.Lock()
		if br.job.state == running && br.job.table[s.Rank].CompareAndSwap(c, nil) {
			c.f.without(br.job, s.Rank, s.Reason, br.cluster)
		}
		c.f.mu.Unlock()
	}
}

// departed counts a rank that has said Bye. Any loop.
func (f *Forwarder) departed(b *job) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.departedLocked(b)
}

func (f *Forwarder) departedLocked(b *job) {
	b.hops.staying--
	f.sayBye(b)
}

// sayBye says Bye on bridges over which nothing more can go: the ranks here have left, and those behind bridges that lead to other networks. What comes
// from a forwarder on the same network never goes on to another one there. With f.mu.
func (f *Forwarder) sayBye(b *job) {
	if b.state != running || b.hops.staying > 0 {
		return
	}
	for _, br := range b.hops.bridges {
		still := br.said
		for _, o := range b.hops.bridges {
			still = still || o.cluster != br.cluster && !o.heard
		}
		if still {
			continue
		}
		br.said = true
		br.conn.out.lastly(make([][]byte, 1), frame(wire.TypeBye))
		if br.heard {
			br.conn.loop.post(br.conn.part)
		}
	}
}

// part ends a bridge that both ends have said Bye on. Loop only.
func (c *conn) part() {
	if c.ended || c.lingering {
		return
	}
	c.out.mu.Lock()
	waits := c.out.pending()
	c.out.mu.Unlock()
	if waits {
		c.settle() // the other end closes
		return
	}
	c.end(nil)
}

// bridgeLost fails the job of a bridge that is gone, or the job goes on over its other rows. With f.mu.
func (f *Forwarder) bridgeLost(br *bridge, cause error) {
	b := br.job
	if cause == nil {
		cause = errors.New("closed")
	}
	reason := fmt.Sprintf("the link to the forwarder %s is lost: %v", br.addr, cause)
	switch {
	case b.state == gathering:
		delete(b.hops.bridges, br.zipper)
		f.breakUp(b, wire.RefuseShutdown, reason)
	case b.state == running && !(br.said && br.heard):
		f.log.Error("a link between forwarders is lost", zap.String("job", b.id), zap.String("forwarder", br.addr), zap.Error(cause))
		if b.gather.Rails() > 1 {
			f.cutOff(br, reason)
			return
		}
		f.fail(b, 1, wire.Nobody, reason, br.conn)
	}
}
