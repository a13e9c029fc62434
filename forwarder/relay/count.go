package relay

import (
	"fmt"
	"time"

	"github.com/leidenzipper/zipper/internal/transport"
	"github.com/leidenzipper/zipper/internal/wire"
)

// Each end of a link of a running job periodically tells the other how many bytes it has sent
// (frame Count). The receiver thus notices missing bytes even if nothing follows them, and treats
// the link as lost, as after any other damage.

// putCount inserts a Count, a frame with the number of bytes before it, right behind the partly
// written frame. make builds it from that number. putCount does nothing while another Count is
// queued, or while frames from before Running are.
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
		return // the channel is out of keys, which ends the link elsewhere
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

// putCounted writes frames of the forwarder's own and a Count behind them in one write; putCount
// would need another. It leaves the Count out if other bytes are queued. make builds the Count from
// the number of bytes before it.
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

// uncounted reports whether bytes have been sent over the link since the last Count.
func (o *output) uncounted() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.counts == 0 || o.sent > o.counted
}

// sendCount sends the peer a Count, the number of bytes that were sent before it. It does nothing
// unless the connection is Running. It must be called on the connection's loop, or by Run.
func sendCount(c *Conn) {
	if c.State() != Running {
		return
	}
	if c.sealing.channel.Load() != nil {
		c.sealing.mu.Lock() // numbers must rise in the order in which frames are written
		defer c.sealing.mu.Unlock()
	}
	c.out.putCount(func(x wire.Count) ([]byte, error) { return countFrame(c, x) })
}

// SendCounted writes or queues the last frames before Running, which are not sealed, and the first
// Count behind them, which is sealed if the connection has keys. It leaves out the Count if other
// bytes are queued, because the number of bytes before it is not known then. It returns the errors
// of Send. It may be called on any thread.
func (c *Conn) SendCounted(frames []byte) error {
	if c.sealing.channel.Load() != nil {
		c.sealing.mu.Lock()
		defer c.sealing.mu.Unlock()
	}
	return c.out.putCounted(frames, func(x wire.Count) ([]byte, error) { return countFrame(c, x) })
}

// countFrame returns the frame of Count x, sealed if the connection has keys; the caller then holds
// sealing.mu.
func countFrame(c *Conn, x wire.Count) (b []byte, err error) {
	b = wire.AppendFrame(make([]byte, 0, wire.HeaderLen+wire.CountLen), wire.Control(wire.TypeCount), &x)
	err = c.seal(b, func(frame []byte) error {
		b = frame
		return nil
	})
	return b, err
}

// tickCount sends the peer a Count if the last one is old and bytes have been sent since.
func tickCount(c *Conn, now time.Time) {
	if now.Sub(c.counted) >= c.shared.cfg.PingInterval && c.out.uncounted() {
		c.counted = now
		sendCount(c)
	}
}

// counts compares a Count from the peer with at, the number of bytes that arrived before it. It
// returns an error if bytes are missing.
func counts(c *Conn, body []byte, at uint64) error {
	x, err := wire.ParseCount(body)
	if err == nil {
		err = c.received.Take(x, at)
	}
	if err != nil {
		return fmt.Errorf("the received bytes differ from the sent bytes: %w", err)
	}
	return nil
}
