// Package loop is an epoll reactor: one thread that waits for descriptors, calls their handlers,
// runs work posted to it, and looks at the clock now and then.
//
// One turn of the loop:
//
//  1. links that were read are armed; one that has more to read already is read at once (armAll);
//  2. where much comes and nobody is in a hurry more of it is let come (crowd.go);
//  3. epoll says which descriptors are ready (poll); if none is, the loop looks again for a while
//     (spin.go) and then sleeps;
//  4. handlers of ready descriptors are called, Writable before Readable;
//  5. posted work is done (runInbox);
//  6. if it is time, every handler's Tick is called.
//
// Handlers and posted work must not block. The thread is one of its own, with a nice value of its
// own (nice.go).
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

// Handler is told what happens on its descriptors, on the loop's thread. What it does not do now it
// is asked to do again in the next turn: descriptors are level-triggered.
type Handler interface {
	Readable()          // there may be something to read
	Writable()          // asked for with ArmWrite
	Tick(now time.Time) // about every Config.Tick
}

// Source is what a loop waits for: any transport.Link.
type Source interface {
	FD() int      // becomes readable
	WriteFD() int // becomes writable; may be the same
	Arm() bool    // before sleeping on FD; true: there is something to read already
}

// Values of Config.Poll.
const (
	Adaptive = "adaptive" // spins a little where somebody is in a hurry, then sleeps
	Event    = "event"    // sleeps at once
	Busy     = "busy"     // never sleeps
)

// Config says how a loop works.
type Config struct {
	Poll string        // Adaptive, Event or Busy
	Tick time.Duration // between two Ticks
	Now  func() time.Time
	// System is what the loop waits by; nil: the one that the process runs on.
	System System

	// Nice is the nice value of the thread, -20 (before others) to 19, if the system lets it have
	// that; 0: that of the process. Log is told if the system does not; nil: nobody is.
	Nice int
	Log  *zap.Logger
}

// Loop is one event-loop thread. Methods are for its own thread, but for Post and Stop.
type Loop struct {
	cfg     Config
	sys     System
	epfd    int
	wake    int // eventfd
	watches []*Watch
	empty   []int    // free places in watches
	read    []*Watch // read since they were last armed
	now     time.Time
	next    time.Time // Tick
	spin    spinner
	hurried atomic.Int64 // Hurry
	crowd   crowd
	prio    priority
	events  [maxEvents]unix.EpollEvent
	stopped bool

	mu    sync.Mutex
	inbox []func()
	awake bool // the wake-up for the inbox is on its way
	done  bool // no posts any more
}

// Watch is a source that a loop waits for.
type Watch struct {
	l       *Loop
	src     Source
	h       Handler
	slot    int
	touched bool // in Loop.read
	paused  bool // not read; only the loop's own thread looks
	gone    bool

	mu     sync.Mutex // for both, since any thread may ask for writability
	noread bool
	write  bool
}

// The 64 bits of an epoll event: place in watches, and whether it is about writing.
const (
	wakeSlot  = -1
	writeFlag = 1 << 30
)

// New makes a loop, which waits for Run or Step. Close frees it.
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

// Post has the loop run fn soon. It reports false when the loop has ended. Any thread.
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

// Stop makes Run return after the work that is posted; nothing can be posted afterwards. Any
// thread.
func (l *Loop) Stop() {
	l.Post(func() {
		l.mu.Lock()
		l.done = true
		l.mu.Unlock()
	})
}

// Hurry adds to the count of sources for which an Adaptive loop looks again before it sleeps. With
// none it sleeps at once: whoever joins waits for others anyhow. Any thread.
func (l *Loop) Hurry(n int) { l.hurried.Add(int64(n)) }

// Now is the time at which this turn began.
func (l *Loop) Now() time.Time { return l.now }

// Moved notes that n bytes went through without having been copied, which says how fast large
// segments come (nice.go).
func (l *Loop) Moved(n int) { l.prio.moved += n }

// Run is the loop; it returns after Stop.
func (l *Loop) Run() {
	runtime.LockOSThread() // for good: a thread with a nice value of its own is of no use to others
	if err := l.prio.start(l.cfg.Nice, l.now); err != nil && l.cfg.Log != nil {
		l.cfg.Log.Info("the event loops keep the priority of the process: "+
			"a nice value below it takes root, CAP_SYS_NICE or Nice= of a service",
			zap.Int("nice", l.cfg.Nice), zap.Error(err))
	}
	for !l.stopped {
		l.turn(true)
		l.prio.adapt(l.now)
	}
}

// Step is one turn that does not wait; it reports whether there was anything to do. It is for those
// who drive a loop themselves instead of calling Run.
func (l *Loop) Step() bool { return l.turn(false) }

// Turn is one turn that waits, for them too.
func (l *Loop) Turn() { l.turn(true) }

func (l *Loop) turn(wait bool) (found bool) {
	ready := l.armAll()
	if wait && !ready && l.batches() {
		l.sys.Sleep(batchFor)
	}
	n := l.poll(0)
	l.now = l.cfg.Now()
	if n == 0 && !ready && wait && !l.lookAgain() {
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

// lookAgain reports whether to look again at once, after others had their turn, instead of
// sleeping.
func (l *Loop) lookAgain() bool {
	switch l.cfg.Poll {
	case Busy:
		return true
	case Event:
		return false
	}
	if l.hurried.Load() <= 0 {
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

// readable has the handler read; the source is armed before the loop sleeps.
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

// poll waits for events, at most ms milliseconds.
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

// Add has the loop wait for a source.
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

// ArmWrite says whether Writable is wanted. Any thread; not after Remove.
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

// Resume has a source read again.
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

// ctl tells epoll what is wanted of the descriptor that is read.
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

// Remove forgets a source, whose descriptors are still open. Nothing of its handler is called any
// more.
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
