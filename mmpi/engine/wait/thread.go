package wait

import (
	"slices"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// progressThread moves bytes when no application thread does. It calls no native MPI.
type progressThread struct {
	started   bool
	watching  atomic.Bool // the thread sleeps on the links
	forOutput bool        // the thread also waits for room to write
	unwaked   bool        // nothing woke the thread the last time
	// idle says that the thread sleeps for idleFor. It is set with the lock; the thread that rouses
	// it clears it.
	idle   atomic.Bool
	timing bool          // the timer is set
	ticked time.Duration // time of its last tick
	due    atomic.Bool   // the next thread that polls has to tick
	set    []unix.PollFd // scratch space
	join   func()
}

// Start starts the progress thread.
func (w *Waiter) Start() {
	w.t.started = true
	w.t.join = w.sys.Go(w.run, true)
}

// Started reports whether there is a progress thread.
func (w *Waiter) Started() bool { return w.t.started }

// Stop waits until the progress thread has noticed that the driver has ended.
func (w *Waiter) Stop() {
	if w.t.started {
		w.sys.Signal(w.ev.kick)
		w.t.join()
	}
}

// Idle reports whether the progress thread sleeps for idleFor.
func (w *Waiter) Idle() bool { return w.t.idle.Load() }

// TakeDue reports whether the progress thread has left a tick to the caller.
func (w *Waiter) TakeDue() bool {
	if !w.t.due.Load() {
		return false
	}
	w.t.due.Store(false)
	return true
}

// FlushSoon makes the progress thread write out held messages after FlushAfter. The caller holds
// the lock.
func (w *Waiter) FlushSoon() {
	if !w.t.timing {
		w.t.timing = true
		w.sys.SetTimer(w.ev.timer)
	}
}

// wakeThread ends the progress thread's sleep.
func (w *Waiter) wakeThread() {
	w.t.idle.Store(false)
	w.sys.Signal(w.ev.kick)
}

// failed reports whether an event of the progress thread is no longer a descriptor, and then
// notifies the driver.
func (w *Waiter) failed(kick, timer unix.PollFd) bool {
	if !closed(kick) && !closed(timer) {
		return false
	}
	w.d.Lock()
	defer w.d.Unlock()
	if !w.d.Ended() {
		w.d.EventsClosed()
	}
	return true
}

func (w *Waiter) run() {
	var seen uint64
	every := TickEvery
	own := []unix.PollFd{{Fd: int32(w.ev.kick), Events: unix.POLLIN}, {Fd: int32(w.ev.timer), Events: unix.POLLIN}}
	for {
		polls := w.polls.Load()
		if polls != seen || w.sleepers.Load() > 0 {
			// A thread that sleeps for milliseconds at a time serves the links itself and needs the
			// progress thread less often. libmmpi's threads do so if no other process is in the
			// cluster.
			if polls-seen > uint64(2*every/TickEvery) {
				every = TickEvery
			} else {
				every = min(2*every, AckEvery)
			}
			seen = polls
			if w.d.Now()-w.t.ticked >= AckEvery && w.tick() {
				return
			}
			if every == AckEvery {
				w.tryIdle()
			}
			w.sleep(own, w.sys.UntilMultiple(every))
			if w.failed(own[0], own[1]) {
				return
			}
			if own[0].Revents != 0 {
				w.sys.Drain(w.ev.kick)
				if w.tick() {
					return
				}
			}
			if own[1].Revents != 0 {
				w.flush()
			}
			continue
		}
		every = TickEvery
		if w.watch() {
			return
		}
	}
}

// tryIdle lets the progress thread be idle if an application thread sleeps on the links for long,
// and there is nothing else to do.
func (w *Waiter) tryIdle() {
	if !w.d.TryLock() {
		return
	}
	defer w.d.Unlock()
	w.t.idle.Store(w.sleepers.Load() > 0 && w.longest > AckEvery && w.d.Quiet() && !w.d.Ended())
}

// sleep sleeps for up to d, or longer if idle. A thread that has roused this one since it was
// allowed to idle has also signalled its event, so the sleep ends at once.
func (w *Waiter) sleep(set []unix.PollFd, d time.Duration) {
	if !w.t.idle.Load() {
		w.sys.Poll(set, d, w.keeps)
		return
	}
	w.sys.Poll(set, w.sys.UntilMultiple(idleFor), false)
	w.t.idle.Store(false)
}

// tick ticks, or leaves that to the thread that has the lock. Native MPI yields to other processes
// with the lock held, so waiting for it could take milliseconds. The mutex would then be handed
// over, and both threads would have to be woken. tick reports whether the driver has ended.
func (w *Waiter) tick() bool {
	w.t.ticked = w.d.Now()
	if !w.d.TryLock() {
		w.t.due.Store(true)
		return false
	}
	defer w.d.Unlock()
	if w.d.Ended() {
		return true
	}
	w.t.due.Store(false)
	w.d.Tick(w.t.ticked)
	return false
}

// flush writes out held messages, because the program is busy with something else. The holder of
// the lock may have yielded its core (tick); then flush retries after the same time.
func (w *Waiter) flush() {
	w.sys.Drain(w.ev.timer)
	if !w.d.TryLock() {
		w.sys.SetTimer(w.ev.timer)
		return
	}
	defer w.d.Unlock()
	w.t.timing = false
	w.d.Flush()
}

// watch moves bytes once and then sleeps on the links. It reports whether the driver has ended.
func (w *Waiter) watch() bool {
	t := &w.t
	if !w.d.TryLock() {
		w.sys.Poll(nil, contendedFor, w.keeps) // another thread has the lock
		return false
	}
	if w.d.Ended() {
		w.d.Unlock()
		return true
	}
	moved := w.d.Step()
	if now := w.d.Now(); !w.d.Ended() && now-t.ticked >= AckEvery {
		t.ticked = now
		w.d.Tick(now)
	}
	if moved > 0 || w.d.Ended() || w.d.Arm() {
		w.d.Unlock()
		return false
	}
	p := w.d.Poll(append(t.set[:0], unix.PollFd{Fd: int32(w.ev.kick), Events: unix.POLLIN}))
	p = append(p, unix.PollFd{Fd: int32(w.ev.timer), Events: unix.POLLIN})
	t.set = p
	t.forOutput = w.d.Pending()
	t.watching.Store(true)
	t.idle.Store(t.unwaked && w.d.Quiet())
	w.d.Unlock()
	w.sleep(p, watchFor)
	t.watching.Store(false)
	if w.failed(p[0], p[len(p)-1]) {
		return true
	}
	t.unwaked = !slices.ContainsFunc(p, func(f unix.PollFd) bool { return f.Revents != 0 })
	if p[0].Revents != 0 {
		w.sys.Drain(w.ev.kick)
	}
	if p[len(p)-1].Revents != 0 {
		w.flush()
	}
	return false
}
