package engine

import (
	"runtime"
	"slices"
	"sync/atomic"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// sleepState is how threads wait and who takes over.
//
// Waiting application threads sleep in ppoll on the link and on wake, which a thread that completes something for another one
// signals. The background thread sleeps by time alone while application threads poll, so messages do not wake it; when nobody has polled for
// a tick it sleeps on the link itself, until somebody polls again. kick tells it that there is output it does not know of.
//
// Where nothing is left to do it rests: it sleeps long, and lets Go's monitor sleep too, so that a program that computes or talks inside its cluster
// is not disturbed. kick ends that when an application thread leaves something for a tick, or no longer sleeps on the link in its place.
type sleepState struct {
	polls    atomic.Uint64 // calls of Progress
	sleepers atomic.Int32  // application threads in ppoll
	dozes    time.Duration // how long the last of them wants to sleep
	wake     int           // eventfd
	kick     int           // eventfd
	timer    int           // timerfd of the background thread, for held messages
	timing   bool          // it is set

	background bool        // there is a background thread
	watching   atomic.Bool // it sleeps on the link
	forOutput  bool        // and waits for room to write too
	still      bool        // and the last time nothing waked it
	resting    atomic.Bool // it sleeps for longRest; set with the lock, ended by whoever rouses it
	stop       bool
	stopped    chan struct{}
	ticked     time.Duration
	due        atomic.Bool // whoever polls next ticks
}

const (
	tickEvery  = 2 * time.Millisecond   // how long nobody has polled when the background thread takes over; up to betweenAck after sleeps of milliseconds
	watchFor   = 20 * time.Millisecond  // longest sleep of the background thread, so that ticks go on,
	longRest   = 160 * time.Millisecond // and where there is nothing for them to do but to notice that the link is silent
	slack      = 50 * time.Microsecond  // of its sleeps
	betweenAck = 10 * time.Millisecond  // time between ticks
)

func (s *sleepState) init() (err error) {
	s.stopped = make(chan struct{})
	if s.wake, err = unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK); err != nil {
		return err
	}
	if s.kick, err = unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK); err != nil {
		return err
	}
	s.timer, err = unix.TimerfdCreate(unix.CLOCK_MONOTONIC, unix.TFD_CLOEXEC|unix.TFD_NONBLOCK)
	return err
}

func (s *sleepState) close() {
	unix.Close(s.wake)
	unix.Close(s.kick)
	unix.Close(s.timer)
}

var soon = unix.ItimerSpec{Value: unix.NsecToTimespec(int64(holdFor))}

// soon has the background thread write out what is held, after a while.
func (s *sleepState) soon() {
	if !s.timing {
		s.timing = true
		s.again()
	}
}

func (s *sleepState) again() {
	_, _, _ = unix.RawSyscall6(unix.SYS_TIMERFD_SETTIME, uintptr(s.timer), 0, uintptr(unsafe.Pointer(&soon)), 0, 0, 0) // cannot fail with these arguments
}

var one = [8]byte{1}

func signal(fd int) { _, _ = unix.Write(fd, one[:]) } // fails only when the counter is full: then it is readable already

// drain reads an eventfd or a timerfd.
func drain(fd int) {
	var b [8]byte
	_, _ = unix.Read(fd, b[:])
}

// alert wakes threads that sleep and should know of what has changed under the lock.
func (e *Engine) alert() {
	s := &e.sleep
	if e.completions > 0 && s.sleepers.Load() > 0 {
		signal(s.wake)
	}
	if s.watching.Load() && !s.forOutput && !e.hold.some && e.pending() || s.resting.Load() && !e.quiet() {
		e.rouse()
	}
}

// rouse ends the background thread's sleep.
func (e *Engine) rouse() {
	e.sleep.resting.Store(false)
	signal(e.sleep.kick)
}

// quiet: a tick would find nothing to do.
func (e *Engine) quiet() bool {
	if len(e.acks) > 0 || e.hold.some || e.err != nil {
		return false
	}
	for _, r := range e.rails {
		if !r.up || r.pinged != 0 || r.pending() {
			return false
		}
	}
	return true
}

// pollList has room for the descriptors of all forwarders' rails and two more; with many direct links the list grows beyond it.
type pollList [2 + 2*MaxRails]unix.PollFd

// pollSet lists the links' descriptors; fd is one more to wait for.
func (e *Engine) pollSet(set *pollList, fd int) []unix.PollFd {
	p := append(set[:0], unix.PollFd{Fd: int32(fd), Events: unix.POLLIN})
	for _, r := range e.rails {
		if !r.up {
			continue
		}
		l := r.link
		p = append(p, unix.PollFd{Fd: int32(l.FD()), Events: unix.POLLIN})
		switch {
		case !r.pending():
		case l.WriteFD() == l.FD():
			p[len(p)-1].Events |= unix.POLLOUT
		default:
			p = append(p, unix.PollFd{Fd: int32(l.WriteFD()), Events: unix.POLLOUT})
		}
	}
	return p
}

// ppoll sleeps; an interrupted sleep is a short sleep. With keep the thread sleeps behind the Go scheduler's back and keeps its P: else the
// scheduler's monitor takes the P away after 20 µs, and then looks for more of that every 20 µs, which costs a core what a busy
// forwarder would. Sleeps are short, and a signal ends them when the world has to stop. For guests only: a Go program has goroutines that need the P.
func ppoll(set []unix.PollFd, d time.Duration, keep bool) {
	t := unix.NsecToTimespec(int64(max(d, 0)))
	if !keep {
		_, _ = unix.Ppoll(set, &t, nil)
		return
	}
	_, _, _ = unix.RawSyscall6(unix.SYS_PPOLL, uintptr(unsafe.Pointer(unsafe.SliceData(set))), uintptr(len(set)), uintptr(unsafe.Pointer(&t)), 0, 0, 0)
}

// doze sleeps on the link, unlocked meanwhile.
func (e *Engine) doze(d time.Duration) {
	s := &e.sleep
	if e.arm() {
		return
	}
	keep := e.guest && d <= 5*time.Millisecond // a program may have blocked the signal that would end a longer one
	if s.sleepers.Load() > 0 {
		d, keep = min(d, time.Millisecond), false // several sleepers may take each other's wake-ups
	}
	var set pollList
	p := e.pollSet(&set, s.wake)
	s.sleepers.Add(1)
	s.dozes = d
	e.unlock()
	ppoll(p, d, keep)
	e.lock()
	s.polls.Add(1)
	if s.sleepers.Add(-1) == 0 && s.resting.Load() {
		e.rouse()
	}
	if p[0].Revents != 0 {
		drain(s.wake)
	}
}

func (e *Engine) now() time.Duration { return time.Since(e.start) }

// background moves bytes when nobody else does.
func (e *Engine) background() {
	runtime.LockOSThread()
	_ = unix.Prctl(unix.PR_SET_TIMERSLACK, uintptr(slack), 0, 0, 0) // a program's threads may have inherited more; old kernels and other systems do without
	s := &e.sleep
	defer close(s.stopped)
	var seen uint64
	rest := tickEvery
	own := []unix.PollFd{{Fd: int32(s.kick), Events: unix.POLLIN}, {Fd: int32(s.timer), Events: unix.POLLIN}}
	for {
		polls := s.polls.Load()
		if polls != seen || s.sleepers.Load() > 0 {
			// A thread that sleeps for milliseconds at a time serves the link itself and needs us the less often. libmmpi's do where no other process is in the cluster.
			if polls-seen > uint64(2*rest/tickEvery) {
				rest = tickEvery
			} else {
				rest = min(2*rest, betweenAck)
			}
			seen = polls
			if e.now()-s.ticked >= betweenAck && e.backstage() {
				return
			}
			if rest == betweenAck {
				e.mayRest()
			}
			e.pause(own, untilMultiple(rest))
			if own[0].Revents != 0 {
				drain(s.kick)
				if e.backstage() {
					return
				}
			}
			if own[1].Revents != 0 {
				e.timeUp()
			}
			continue
		}
		rest = tickEvery
		if e.watch() {
			return
		}
	}
}

// mayRest lets the background thread rest if an application thread sleeps on the link, for long, and there is nothing to do beside it.
func (e *Engine) mayRest() {
	s := &e.sleep
	if !e.mu.TryLock() {
		return
	}
	defer e.mu.Unlock()
	s.resting.Store(s.sleepers.Load() > 0 && s.dozes > betweenAck && e.quiet() && !s.stop)
}

// pause sleeps for up to d, or rests. Who has roused the thread since it was to rest has kicked it too, so the sleep ends at once.
func (e *Engine) pause(set []unix.PollFd, d time.Duration) {
	if !e.sleep.resting.Load() {
		ppoll(set, d, e.guest)
		return
	}
	ppoll(set, untilMultiple(longRest), false)
	e.sleep.resting.Store(false)
}

// untilMultiple is how long it takes until the host's monotonic clock shows a multiple of d. So the background threads of all processes of a host wake together, by one
// interrupt of a core instead of one for each process, and what programs lose by it they lose at the same time (Petrini, Kerbyson, Pakin:
// The Case of the Missing Supercomputer Performance, SC 2003).
func untilMultiple(d time.Duration) time.Duration {
	var t unix.Timespec
	if unix.ClockGettime(unix.CLOCK_MONOTONIC, &t) != nil {
		return d
	}
	return d - time.Duration(t.Nano())%d
}

// backstage ticks, or leaves that to the thread that has the lock: native MPI gives way to other processes with the lock held, so that waiting for it could take
// milliseconds, after which the mutex is handed over and both threads have to be woken. It reports whether the engine has ended.
func (e *Engine) backstage() bool {
	s := &e.sleep
	s.ticked = e.now()
	if !e.mu.TryLock() {
		s.due.Store(true)
		return false
	}
	e.completions = 0
	defer e.unlock()
	if s.stop || e.err != nil {
		return true
	}
	s.due.Store(false)
	e.tick(s.ticked)
	return false
}

// timeUp writes out what is held: the program is busy with something else. Whoever has the lock may be somebody who has given the core away (backstage): then it looks
// again after as long a time.
func (e *Engine) timeUp() {
	drain(e.sleep.timer)
	if !e.mu.TryLock() {
		e.sleep.again()
		return
	}
	e.completions = 0
	defer e.unlock()
	e.sleep.timing = false
	if e.hold.some {
		e.hold.over()
		e.writeOut()
	}
}

// watch moves bytes once and then sleeps on the link; it reports whether the engine has ended.
func (e *Engine) watch() bool {
	s := &e.sleep
	if !e.mu.TryLock() {
		ppoll(nil, 100*time.Microsecond, e.guest) // somebody is at it
		return false
	}
	e.completions = 0
	if s.stop || e.err != nil {
		e.unlock()
		return true
	}
	e.hold.over()
	moved := e.stepRails()
	e.serveWindows()
	if now := e.now(); e.err == nil && now-s.ticked >= betweenAck {
		s.ticked = now
		e.tick(now)
	}
	if moved > 0 || e.err != nil || e.arm() {
		e.unlock()
		return false
	}
	var set pollList
	p := e.pollSet(&set, s.kick)
	p = append(p, unix.PollFd{Fd: int32(s.timer), Events: unix.POLLIN})
	s.forOutput = e.pending()
	s.watching.Store(true)
	s.resting.Store(s.still && e.quiet())
	e.unlock()
	e.pause(p, watchFor)
	s.watching.Store(false)
	s.still = !slices.ContainsFunc(p, func(f unix.PollFd) bool { return f.Revents != 0 })
	if p[0].Revents != 0 {
		drain(s.kick)
	}
	if p[len(p)-1].Revents != 0 {
		e.timeUp()
	}
	return false
}
