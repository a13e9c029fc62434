package link

import (
	"fmt"
	"time"

	"github.com/leidenzipper/zipper/wire"
)

// Each end of a link tells the other now and then how many bytes it has sent (frame Count): what was
// left out on the way is noticed when nothing follows it, too, and the link is lost, as by any other
// damage.

// counter is a rail's part of that, both ways; all of it is about the link at hand.
type counter struct {
	sent    uint64 // bytes that the link took
	counts  uint64 // Counts of these
	counted uint64 // sent, after the last of them
	at      time.Duration
	due     bool // the next frame is a Count
	came    wire.Counted
}

// tick sees that the other end is told.
func (c *counter) tick(now, every time.Duration) {
	if c.sent > c.counted && now-c.at >= every {
		c.due = true
	}
}

// sayCount queues a Count, if one is due and no frame is half written: it is the next to go.
func sayCount(r *rail) {
	c := &r.count
	if !c.due || r.link == nil || r.seg.active || !r.queue.Empty() && r.queue.First().Of.off > 0 {
		return
	}
	c.due, c.at = false, r.set.Now()
	c.counts++
	f := r.set.newControl(wire.TypeCount, &wire.Count{Number: c.counts, Bytes: c.sent})
	c.counted = c.sent + uint64(wire.HeaderLen+wire.CountLen)
	if r.set.seal != nil {
		c.counted += wire.SealLen
	}
	f.queued = true
	r.queue.PushFirst(&f.out)
}

// take checks a Count that came when at bytes had come.
func (c *counter) take(body []byte, at uint64) error {
	x, err := wire.ParseCount(body)
	if err == nil {
		err = c.came.Take(x, at)
	}
	if err != nil {
		return breach{fmt.Errorf("not what was sent has come: %w", err)}
	}
	return nil
}
