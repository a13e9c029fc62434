package relay

import (
	"fmt"
	"time"

	"github.com/leidenzipper/zipper/transport"
	"github.com/leidenzipper/zipper/wire"
)

// Each end of a link of a running job tells the other now and then how many bytes it has sent
// (frame Count). So what was left out on the way is noticed when nothing follows it, too, and the
// link is lost, as by any other damage.

// putCount puts a frame, made of how much goes before it, right behind the frame that is half
// written. Nothing is done while another one waits, or what was queued before the connection ran.
func (o *output) putCount(make func(wire.Count) ([]byte, error)) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.closed || o.count.buf != nil || o.ahead > 0 {
		return
	}
	rest := o.current.end - o.current.off
	if p := o.current.zc; p != nil {
		rest = dataHead + p.bytes - p.left()
	}
	b, err := make(wire.Count{Number: o.counts + 1, Bytes: o.sent + uint64(rest)})
	if err != nil {
		return // no keys are left: the link ends otherwise
	}
	o.counts++
	o.counted = o.sent + uint64(rest+len(b))
	n := 0
	if !o.pending() {
		n, err = o.link.TryWrite(b)
		o.sent += uint64(n)
		if n == len(b) {
			return
		}
		if err != nil && err != transport.ErrAgain {
			o.fail(err)
			return
		}
		o.arm(true)
	}
	buf := o.pool.get(len(b))
	buf.b = append(buf.b, b...)
	buf.refs = 1
	if e := (entry{buf: buf, off: n, end: len(b), src: wire.Nobody}); n > 0 {
		o.current = e
	} else {
		o.count = e
	}
}

// uncounted reports whether something was sent since the last Count.
func (o *output) uncounted() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.sent > o.counted
}

// sendCount tells the other end how much was sent. On the connection's loop, or before it runs.
func (c *Conn) sendCount() {
	if c.State() != Running {
		return
	}
	if c.sealing.channel.Load() != nil {
		c.sealing.mu.Lock() // numbers rise in the order in which frames are written
		defer c.sealing.mu.Unlock()
	}
	c.out.putCount(func(x wire.Count) (b []byte, err error) {
		err = c.seal(wire.AppendFrame(nil, wire.Control(wire.TypeCount), &x), func(frame []byte) error {
			b = frame
			return nil
		})
		return b, err
	})
}

// tickCount sends a Count if it is time for one.
func tickCount(c *Conn, now time.Time) {
	if now.Sub(c.counted) >= c.shared.cfg.PingInterval && c.out.uncounted() {
		c.counted = now
		c.sendCount()
	}
}

// counts checks a Count that has come; at is how much had come before it.
func counts(c *Conn, body []byte, at uint64) error {
	x, err := wire.ParseCount(body)
	if err == nil {
		err = c.came.Take(x, at)
	}
	if err != nil {
		return fmt.Errorf("not what was sent has come: %w", err)
	}
	return nil
}
