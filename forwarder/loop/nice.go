package loop

import (
	"time"

	"golang.org/x/sys/unix"
)

// priority manages the scheduling priority of a loop's thread.
//
// For small messages the thread runs before others. Linux considers nice values when it distributes
// threads over cores. So the loop gets a core of its own if it shares the host with ranks that
// spin.
//
// While large messages pass as fast as processors can move them, the thread runs behind others.
// Then the ranks, which copy, have a core each, and the loop finds more to do in each turn
// (docs/decisions/0022-forwarder-runs-before-ranks.md).
type priority struct {
	nice  int       // the nice value for small messages
	fixed bool      // whether adapt keeps the nice value: it is 0 or more, or refused
	bulk  bool      // whether the thread runs behind others
	moved int       // the number of bytes that have gone through pipes since the time since
	since time.Time // the time at which adapt last looked at moved
}

// start sets the nice value of the thread. Like adapt, it must be called on the loop's thread. It
// returns an error if the system does not permit the value; the thread then has that of the
// process.
func (p *priority) start(nice int, now time.Time) error {
	p.nice, p.since = nice, now
	if p.fixed = nice >= 0; nice == 0 {
		return nil
	}
	err := setNice(nice)
	p.fixed = p.fixed || err != nil
	return err
}

// adapt checks the rate of moved bytes periodically, and sets the nice value for it.
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
