package engine

import (
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"github.com/leidenzipper/zipper/transport"
	"github.com/leidenzipper/zipper/wire"
)

// Progress moves what can be moved: bytes to and from the link, native messages into posted receives, collectives. It returns more than 0
// if anything happened. When nothing does it sleeps on the link for up to block. Application threads only.
func (e *Engine) Progress(block time.Duration) int {
	if block == GiveWay {
		// Not in the program, where Go's monitor would see a thread that is long in foreign code and look for more of that every 20 µs.
		_, _, _ = unix.RawSyscall(unix.SYS_SCHED_YIELD, 0, 0, 0)
	}
	e.lock()
	e.wait.Polled()
	e.hold.over()
	if e.wait.TakeDue() {
		e.tick(e.now())
	}
	n := e.advance()
	if n == 0 && block > 0 && e.poll != PollBusy && e.err == nil {
		if e.nativeColls > 0 || len(e.natives) > 0 {
			block = min(block, e.nap()) // the link does not tell when they are over
		}
		e.wait.Block(block)
		n = e.advance()
	}
	if n > 0 {
		e.naps = 0
	}
	e.unlock()
	return n
}

// GiveWay instead of a time to sleep: give the core to other threads for a moment first.
const GiveWay time.Duration = -1

// Sleeps while native MPI is waited for: nothing wakes the sleeper when it is done. Short ones at first, since native stages of collectives
// last microseconds. A wait comes here only after it has spun and given way for as long as that pays (cgo/libmmpi/request/wait.c, which has
// its own naps): then others need the core, and a sleeper is scheduled sooner than one that has yielded.
const (
	shortNap  = 5 * time.Microsecond
	shortNaps = 64
	longNap   = 100 * time.Microsecond
)

func (e *Engine) nap() time.Duration {
	if e.naps++; e.naps <= shortNaps {
		return shortNap
	}
	return longNap
}

// advance does everything once.
func (e *Engine) advance() int {
	if e.err != nil {
		return 0
	}
	n := e.stepRails()
	e.serveWindows()
	n += e.advanceNative()
	n += e.advanceCollectives()
	for _, r := range e.rails {
		if r.pending() && !r.blocked {
			e.writeOut()
			break
		}
	}
	return n
}

// advanceNative probes for posted receives and tests native ones.
func (e *Engine) advanceNative() (n int) {
	if e.localPosted > 0 || e.flushes > 0 {
		for _, c := range e.comms {
			if c != nil && (c.localPosted > 0 || c.flush) {
				n += e.probeLocal(c)
			}
		}
	}
	if len(e.natives) == 0 {
		return n
	}
	left := e.natives[:0]
	for i, r := range e.natives {
		over, err := e.native.Test(r)
		if e.err != nil {
			return n
		}
		if err != nil {
			r.cell.Error = int32(CodeOf(err))
			over = true
		}
		if !over {
			left = append(left, e.natives[i])
			continue
		}
		e.over(r)
		n++
	}
	clear(e.natives[len(left):])
	e.natives = left
	return n
}

// tick does what has to be done from time to time: acknowledgements that found no frame to ride on, and pings.
func (e *Engine) tick(now time.Duration) {
	if e.err != nil {
		return
	}
	e.flushAcks()
	for _, r := range e.rails {
		switch {
		case !r.up || r.bye != running:
		case r.fresh:
			r.fresh, r.heard, r.pinged = false, now, 0
		case r.pinged == 0:
			if now-r.heard > e.limits.Ping {
				r.pinged = now
				r.push(e.newControl(wire.TypePing, nil))
			}
		default:
			if limit := e.patience(r); now-r.pinged > limit {
				e.lost(r, failure(ErrLink, "no answer for %v", limit))
			}
		}
	}
	if e.multi {
		e.giveUp(now)
		e.tellMissing(now)
	}
	e.writeOut()
}

// patience is how long a ping may go unanswered. The last way out is not given up soon while the network still reaches the other host: the process there is stopped,
// or waits for a core.
func (e *Engine) patience(r *rail) time.Duration {
	another := r.tracked() && slices.ContainsFunc(e.forwarders, func(o *rail) bool { return o != r && o.up })
	if l, ok := r.link.(transport.Listening); ok && !another {
		if unheard, known := l.Unheard(); known && unheard < e.limits.Silence {
			return max(e.limits.Silence, e.limits.LastWay)
		}
	}
	return e.limits.Silence
}
