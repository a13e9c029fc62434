// Package loop is an epoll reactor: one thread that waits for descriptors, calls their handlers,
// runs posted functions, and checks the clock periodically.
//
// One turn of the loop:
//
//  1. links that were read are armed; a link that has more input already is read at once (armAll);
//  2. if events are frequent and no source is in a hurry, events accumulate (crowd.go);
//  3. epoll reports the ready descriptors (poll); if none is ready, the loop looks again for a while
//     (spin.go) and then sleeps;
//  4. handlers of ready descriptors are called, Writable before Readable;
//  5. posted functions are called (runInbox);
//  6. if it is due, every handler's Tick is called.
//
// Handlers and posted functions must not block. The thread belongs to the loop alone, and has its
// own nice value (nice.go).
package loop

import (
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"
	"golang.org/x/sys/unix"
)

// Handler handles the events of its descriptors, on the loop's thread. Events that it leaves are
// reported again in the next turn: descriptors are level-triggered.
type Handler interface {
	Readable()          // input may be available
	Writable()          // the link is writable; requested by ArmWrite
	Tick(now time.Time) // called about every Config.Tick, with the present time
}

// Source is an object with descriptors to wait for: any transport.Link.
type Source interface {
	FD() int      // returns the descriptor that becomes readable
	WriteFD() int // returns the descriptor that becomes writable; may be the same
	Arm() bool    // called before sleeping on FD; returns true if input is available already
}

// Values of Config.Poll.
const (
	// looks for events again for a short time while a source needs a quick answer (AddSpinning),
	// then sleeps
	Adaptive = "adaptive"
	Event    = "event" // sleeps until there are events
	Busy     = "busy"  // looks for events all the time, and never sleeps
)

// Config has the settings of a loop.
type Config struct {
	Poll string           // Adaptive, Event or Busy
	Tick time.Duration    // the time between two Ticks
	Now  func() time.Time // the clock; nil for time.Now
	// System has the system calls of the loop; nil for those of Linux.
	System System

	// Nice is the nice value of the thread, -20 (before others) to 19, if the system permits it; 0
	// means that of the process. Log, if not nil, gets a line if the system does not permit it.
	Nice int
	Log  *zap.Logger
}

// Loop is one event-loop thread. Methods must be called on its own thread, except for Post, Stop
// and AddSpinning.
type Loop struct {
	cfg      Config
	sys      System
	epfd     int
	wake     int // the eventfd that wakes the loop
	watches  []*Watch
	empty    []int    // the indices of watches that are free for new sources
	read     []*Watch // the watches that were read since they were last armed
	now      time.Time
	next     time.Time // the time of the next Tick
	spin     spinner
	spinning atomic.Int64 // the sum of the arguments of AddSpinning
	crowd    crowd
	prio     priority
	events   [maxEvents]unix.EpollEvent
	stopped  bool

	mu    sync.Mutex
	inbox []func()
	awake bool // whether a wake-up for the inbox is pending
	done  bool // whether Post refuses further functions
}

// Watch is a source for whose events a loop waits, and the handler of these events.
type Watch struct {
	l       *Loop
	src     Source
	h       Handler
	slot    int
	touched bool // whether the Watch is in Loop.read
	paused  bool // whether the source is not read (Pause); used only on the loop's own thread
	gone    bool

	mu     sync.Mutex // guards noread and write, because any thread may request writability
	noread bool
	write  bool
}

// The field Fd of an epoll event has the index in watches, with writeFlag if the event is that of
// the write descriptor, or wakeSlot for the descriptor that wakes the loop.
const (
	wakeSlot  = -1
	writeFlag = 1 << 30
)

// New returns a loop with the settings cfg, which does nothing until Run or Step. Close frees it.
func New(cfg Config) (*Loop, error) {
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	l := &Loop{cfg: cfg, now: cfg.Now()}
	l.next = l.now.Add(cfg.Tick)
	if l.sys = cfg.System; l.sys == nil {
		l.sys = linux{}
	}
	var err error
	if l.epfd, err = l.sys.Epoll(); err != nil {
		return nil, fmt.Errorf("epoll: %w", err)
	}
	if l.wake, err = l.sys.Event(); err != nil {
		l.sys.Close(l.epfd)
		return nil, fmt.Errorf("eventfd: %w", err)
	}
	if err := l.ctl(unix.EPOLL_CTL_ADD, l.wake, unix.EPOLLIN, wakeSlot); err != nil {
		l.Close()
		return nil, err
	}
	return l, nil
}

// Close frees the loop. Run must have returned.
func (l *Loop) Close() {
	l.sys.Close(l.epfd)
	l.sys.Close(l.wake)
}

func (l *Loop) ctl(op, fd int, events uint32, slot int) error {
	if err := l.sys.Control(l.epfd, op, fd, &unix.EpollEvent{Events: events, Fd: int32(slot)}); err != nil {
		return fmt.Errorf("epoll_ctl: %w", err)
	}
	return nil
}

// Post runs fn on the loop soon. It returns false if the loop has ended. It may be called on any
// thread.
func (l *Loop) Post(fn func()) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.done {
		return false
	}
	l.inbox = append(l.inbox, fn)
	if !l.awake {
		l.awake = true
		l.sys.Signal(l.wake)
	}
	return true
}

// Stop makes Run return after the posted functions; nothing can be posted afterwards. It may be
// called on any thread.
func (l *Loop) Stop() {
	l.Post(func() {
		l.mu.Lock()
		l.done = true
		l.mu.Unlock()
	})
}

// AddSpinning adds n to the count of sources for which an Adaptive loop spins before it sleeps. It
// sleeps at once if the count is 0: ranks that join wait for others anyway. AddSpinning may be
// called on any thread.
func (l *Loop) AddSpinning(n int) { l.spinning.Add(int64(n)) }

// Now returns the time at which the present turn of the loop began.
func (l *Loop) Now() time.Time { return l.now }

// Moved records that n bytes were forwarded without a copy, which measures the rate of large
// segments (nice.go).
func (l *Loop) Moved(n int) { l.prio.moved += n }

// Run performs turns of the loop until Stop is called. It locks its goroutine to a thread.
func (l *Loop) Run() {
	// never undone: a thread with its own nice value is of no use to others
	runtime.LockOSThread()
	if err := l.prio.start(l.cfg.Nice, l.now); err != nil && l.cfg.Log != nil {
		l.cfg.Log.Info("the event loops keep the nice value of the process: "+
			"a lower value requires root, CAP_SYS_NICE or Nice= of a service",
			zap.Int("nice", l.cfg.Nice), zap.Error(err))
	}
	for !l.stopped {
		l.turn(true)
		l.prio.adapt(l.now)
	}
}

// Step performs one turn that does not wait, and reports whether there were events. It is for
// callers that drive a loop themselves instead of calling Run.
func (l *Loop) Step() bool { return l.turn(false) }

// Turn performs one turn that waits for events, for callers that drive a loop themselves.
func (l *Loop) Turn() { l.turn(true) }

func (l *Loop) turn(wait bool) (found bool) {
	ready := l.armAll()
	if wait && !ready && l.batches() {
		l.sys.Sleep(batchFor)
	}
	n := l.poll(0)
	l.now = l.cfg.Now()
	if n == 0 && !ready && wait && !l.pollAgain() {
		n = l.poll(max(1, int(l.next.Sub(l.now)/time.Millisecond)))
		l.now = l.cfg.Now()
	}
	if found = n > 0 || ready; found {
		l.spin.found(l.now)
		l.crowd.found(l.now)
	}
	woken := false
	for i := range l.events[:n] {
		e := &l.events[i]
		if e.Fd == wakeSlot {
			woken = true
			continue
		}
		w := l.watches[e.Fd&^writeFlag]
		if w == nil {
			continue // ended by an earlier event of this turn
		}
		if e.Fd&writeFlag != 0 || e.Events&unix.EPOLLOUT != 0 {
			w.h.Writable()
		}
		if e.Fd&writeFlag == 0 && e.Events&^unix.EPOLLOUT != 0 && !w.gone {
			w.readable()
		}
	}
	if woken {
		if l.runInbox(); l.stopped {
			return found
		}
	}
	if !l.now.Before(l.next) {
		for _, w := range l.watches {
			if w != nil {
				w.h.Tick(l.now)
			}
		}
		l.next = l.now.Add(l.cfg.Tick)
	}
	return found
}

// pollAgain reports whether the loop, which has found no events, looks for them again instead of
// sleeping. A loop that spins (Adaptive) lets other threads run before it returns true.
func (l *Loop) pollAgain() bool {
	switch l.cfg.Poll {
	case Busy:
		return true
	case Event:
		return false
	}
	if l.spinning.Load() <= 0 {
		l.spin.rest()
		return false
	}
	if !l.spin.again(l.now) {
		return false
	}
	// Behind the Go scheduler's back: it has nothing to run on this thread, and would take
	// microseconds to find that out.
	_, _, _ = unix.RawSyscall(unix.SYS_SCHED_YIELD, 0, 0, 0)
	return true
}

// armAll prepares the sources that were read since the last time for sleeping on their descriptors;
// the ones that have something to read already are read, and ready says that there were some.
func (l *Loop) armAll() (ready bool) {
	list := l.read
	l.read = l.read[len(l.read):]
	for _, w := range list {
		w.touched = false
		if !w.gone && !w.paused && w.src.Arm() {
			ready = true
			w.readable()
		}
	}
	if len(l.read) == 0 {
		l.read = list[:0]
	}
	return ready
}

// readable has the handler read the source. The source is armed (Source.Arm) before the loop sleeps
// the next time.
func (w *Watch) readable() {
	w.touch()
	w.h.Readable()
}

func (w *Watch) touch() {
	if !w.touched {
		w.touched = true
		w.l.read = append(w.l.read, w)
	}
}

// poll waits for events at most ms milliseconds, stores them in events, and returns their number.
func (l *Loop) poll(ms int) int { return l.sys.Wait(l.epfd, l.events[:], ms) }

func (l *Loop) runInbox() {
	l.sys.Drain(l.wake)
	l.mu.Lock()
	work := l.inbox
	l.inbox, l.awake = nil, false
	l.mu.Unlock()
	for _, fn := range work {
		fn()
	}
	l.mu.Lock()
	l.stopped = l.done
	l.mu.Unlock()
}

var errTooMany = errors.New("too many links")

// Add makes the loop wait for input from a source, whose events h handles from now on. The Watch
// changes the events that the loop waits for, and ends the wait (Watch.Remove).
func (l *Loop) Add(src Source, h Handler) (*Watch, error) {
	slot := len(l.watches)
	if n := len(l.empty); n > 0 {
		slot = l.empty[n-1]
	}
	if slot >= writeFlag {
		return nil, errTooMany
	}
	if err := l.ctl(unix.EPOLL_CTL_ADD, src.FD(), unix.EPOLLIN, slot); err != nil {
		return nil, err
	}
	if src.WriteFD() != src.FD() {
		if err := l.ctl(unix.EPOLL_CTL_ADD, src.WriteFD(), 0, slot|writeFlag); err != nil {
			return nil, errors.Join(err, l.ctl(unix.EPOLL_CTL_DEL, src.FD(), 0, 0))
		}
	}
	w := &Watch{l: l, src: src, h: h, slot: slot}
	if slot == len(l.watches) {
		l.watches = append(l.watches, w)
	} else {
		l.empty = l.empty[:len(l.empty)-1]
		l.watches[slot] = w
	}
	w.touch()
	return w, nil
}

// ArmWrite says whether the handler's Writable is called when the source becomes writable. Any
// thread; not after Remove.
func (w *Watch) ArmWrite(on bool) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.write = on
	if w.src.WriteFD() == w.src.FD() {
		return w.ctl()
	}
	events := uint32(0)
	if on {
		events = unix.EPOLLOUT
	}
	return w.l.ctl(unix.EPOLL_CTL_MOD, w.src.WriteFD(), events, w.slot|writeFlag)
}

// Pause has a source not read until Resume. Readable is still called when its other end has closed
// it. Not after Remove.
func (w *Watch) Pause() error {
	w.paused = true
	return w.armRead(false)
}

// Resume has the loop read a source again after Pause.
func (w *Watch) Resume() error {
	w.paused = false
	w.touch() // it may have something already
	return w.armRead(true)
}

func (w *Watch) armRead(on bool) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.noread = !on
	return w.ctl()
}

// ctl tells epoll for which events of the source's descriptors the loop waits.
func (w *Watch) ctl() error {
	events := uint32(unix.EPOLLIN)
	if w.noread {
		events = unix.EPOLLRDHUP
	}
	if w.write && w.src.WriteFD() == w.src.FD() {
		events |= unix.EPOLLOUT
	}
	return w.l.ctl(unix.EPOLL_CTL_MOD, w.src.FD(), events, w.slot)
}

// Remove ends the loop's wait for a source, whose descriptors must still be open. The loop calls
// its handler no more.
func (w *Watch) Remove() error {
	w.gone = true
	err := w.l.ctl(unix.EPOLL_CTL_DEL, w.src.FD(), 0, 0)
	if w.src.WriteFD() != w.src.FD() {
		err = errors.Join(err, w.l.ctl(unix.EPOLL_CTL_DEL, w.src.WriteFD(), 0, 0))
	}
	w.l.watches[w.slot] = nil
	w.l.empty = append(w.l.empty, w.slot)
	return err
}
