package loop

import (
	"time"

	"golang.org/x/sys/unix"
)

// priority is the place of a loop's thread among others that want its core.
//
// For small messages the thread goes before them. Linux weighs threads when it spreads them over
// cores. So the loop gets a core of its own where it shares the host with ranks that spin.
//
// While large messages go through as fast as processors can, the thread goes behind them. Then the
// ranks, which copy, have a core each, and the loop finds more to do in each turn
// (docs/decisions/0022-forwarder-runs-before-ranks.md).
type priority struct {
	nice  int       // for small messages
	fixed bool      // the system lets it be no other
	bulk  bool      // it is behind others
	moved int       // bytes that went through pipes since
	since time.Time // the last look
}

// start is called on the loop's thread, as adapt is. The error says that the system does not grant
// the nice value; then the thread has that of the process.
func (p *priority) start(nice int, now time.Time) error {
	p.nice, p.since = nice, now
	if p.fixed = nice >= 0; nice == 0 {
		return nil
	}
	err := setNice(nice)
	p.fixed = p.fixed || err != nil
	return err
}

// adapt looks now and then how much has been moved.
func (p *priority) adapt(now time.Time) {
	d := now.Sub(p.since)
	if p.fixed || d < bulkEvery {
		return
	}
	rate := float64(p.moved) / d.Seconds()
	bulk := rate >= bulkRate || p.bulk && rate >= bulkRate/4
	p.moved, p.since = 0, now
	if bulk == p.bulk {
		return
	}
	n := p.nice
	if bulk {
		n = bulkNice
	}
	if setNice(n) == nil {
		p.bulk = bulk
	}
}

func setNice(n int) error { return unix.Setpriority(unix.PRIO_PROCESS, 0, n) } // Linux: of this thread
