package relay

import (
	"fmt"
	"time"

	"github.com/leidenzipper/zipper/internal/transport"
	"github.com/leidenzipper/zipper/internal/wire"
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

// putCounted is write for frames of our own with a Count behind them, made of how much goes before
// it: one write, where putCount would be another one.
func (o *output) putCounted(frames []byte, make func(wire.Count) ([]byte, error)) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.pending() && !o.closed {
		b, err := make(wire.Count{Number: o.counts + 1, Bytes: o.sent + uint64(len(frames))})
		if err == nil {
			frames = append(frames, b...)
			o.counts++
			o.counted = o.sent + uint64(len(frames))
		}
	}
	var one [1][]byte
	_, err := o.put(one[:], nil, wire.Nobody, frames, nil)
	return err
}

// uncounted reports whether something was sent since the last Count.
func (o *output) uncounted() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.counts == 0 || o.sent > o.counted
}

// sendCount tells the other end how much was sent. On the connection's loop, or before it runs.
func sendCount(c *Conn) {
	if c.State() != Running {
		return
	}
	if c.sealing.channel.Load() != nil {
		c.sealing.mu.Lock() // numbers rise in the order in which frames are written
		defer c.sealing.mu.Unlock()
	}
	c.out.putCount(func(x wire.Count) ([]byte, error) { return countFrame(c, x) })
}

// SendCounted writes the last frames before the connection runs, which are not sealed, or queues
// them, with the first Count behind them. The error is Send's. Any thread.
func (c *Conn) SendCounted(frames []byte) error {
	if c.sealing.channel.Load() != nil {
		c.sealing.mu.Lock()
		defer c.sealing.mu.Unlock()
	}
	return c.out.putCounted(frames, func(x wire.Count) ([]byte, error) { return countFrame(c, x) })
}

// countFrame is a Count as it goes over the link. With sealing.mu, if there is a channel.
func countFrame(c *Conn, x wire.Count) (b []byte, err error) {
	b = wire.AppendFrame(make([]byte, 0, wire.HeaderLen+wire.CountLen), wire.Control(wire.TypeCount), &x)
	err = c.seal(b, func(frame []byte) error {
		b = frame
		return nil
	})
	return b, err
}

// tickCount sends a Count if it is time for one.
func tickCount(c *Conn, now time.Time) {
	if now.Sub(c.counted) >= c.shared.cfg.PingInterval && c.out.uncounted() {
		c.counted = now
		sendCount(c)
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
