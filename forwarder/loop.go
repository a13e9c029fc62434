package forwarder

import (
	"fmt"
	"runtime"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// loop is one event-loop thread. It owns its links: it alone reads from them, writes what is queued for them and
// ends them. Other loops may write to them directly (output) and post work to it (post).
type loop struct {
	f     *Forwarder
	epfd  int
	wake  int // eventfd
	conns []*conn
	empty []int   // free places in conns
	read  []*conn // links read since the last Arm
	now   time.Time
	spin  spinner
	prio  priority

	buf []byte // what is being read
	one [][]byte
	vec [][]byte

	mu    sync.Mutex
	inbox []func()
	awake bool // the wake-up for the inbox is on its way
	done  bool // no posts any more
}

// The 64 bits of an epoll event: place in conns, and whether it is about writing.
const (
	wakeSlot  = -1
	writeFlag = 1 << 30
)

func newLoop(f *Forwarder) (*loop, error) {
	l := &loop{f: f, buf: make([]byte, f.cfg.ReadBuffer), one: make([][]byte, 1), vec: make([][]byte, maxIov), now: time.Now()}
	var err error
	if l.epfd, err = unix.EpollCreate1(unix.EPOLL_CLOEXEC); err != nil {
		return nil, fmt.Errorf("epoll: %w", err)
	}
	if l.wake, err = unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK); err != nil {
		unix.Close(l.epfd)
		return nil, fmt.Errorf("eventfd: %w", err)
	}
	if err := l.ctl(unix.EPOLL_CTL_ADD, l.wake, unix.EPOLLIN, wakeSlot); err != nil {
		l.free()
		return nil, err
	}
	return l, nil
}

func (l *loop) free() {
	unix.Close(l.epfd)
	unix.Close(l.wake)
}

func (l *loop) ctl(op, fd int, events uint32, slot int) error {
	if err := unix.EpollCtl(l.epfd, op, fd, &unix.EpollEvent{Events: events, Fd: int32(slot)}); err != nil {
		return fmt.Errorf("epoll_ctl: %w", err)
	}
	return nil
}

// post has the loop run fn soon. It reports false when the loop has ended. Any thread.
func (l *loop) post(fn func()) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.done {
		return false
	}
	l.inbox = append(l.inbox, fn)
	if !l.awake {
		l.awake = true
		unix.Write(l.wake, []byte{1, 0, 0, 0, 0, 0, 0, 0}) // cannot fail: the counter is small
	}
	return true
}

// stop makes run return after the work that is posted; nothing can be posted afterwards. Any thread.
func (l *loop) stop() {
	l.post(func() {
		l.mu.Lock()
		l.done = true
		l.mu.Unlock()
	})
}

// run is the loop; it returns after stop, with all links closed.
func (l *loop) run() {
	runtime.LockOSThread() // for good: a thread with a nice value of its own is of no use to others
	l.prio.start(l)
	var events [128]unix.EpollEvent
	tick := min(time.Second, l.f.cfg.PingInterval/4, l.f.cfg.Linger/4, l.f.cfg.JoinTimeout/4)
	next := time.Now().Add(tick)
	for {
		ready := l.armAll()
		n := l.poll(events[:], 0)
		l.now = time.Now()
		if n == 0 && !ready && !l.lookAgain() {
			n = l.poll(events[:], max(1, int(next.Sub(l.now)/time.Millisecond)))
			l.now = time.Now()
		}
		if n > 0 || ready {
			l.spin.found(l.now)
		}
		woken := false
		for _, e := range events[:n] {
			if e.Fd == wakeSlot {
				woken = true
				continue
			}
			c := l.conns[e.Fd&^writeFlag]
			if c == nil {
				continue // ended by an earlier event of this round
			}
			if e.Fd&writeFlag != 0 || e.Events&unix.EPOLLOUT != 0 {
				c.flush()
			}
			if e.Fd&writeFlag == 0 && e.Events&^unix.EPOLLOUT != 0 {
				c.readable()
			}
		}
		if woken && l.runInbox() {
			return
		}
		l.prio.adapt(l.now)
		if !l.now.Before(next) {
			for _, c := range l.conns {
				if c != nil {
					c.tick()
				}
			}
			next = l.now.Add(tick)
		}
	}
}

// lookAgain reports whether to look again at once, after others had their turn, instead of sleeping.
func (l *loop) lookAgain() bool {
	switch l.f.cfg.Poll {
	case PollBusy:
		return true
	case PollEvent:
		return false
	}
	if !l.spin.again(l.now) {
		return false
	}
	// Behind the Go scheduler's back: it has nothing to run on this thread, and would take microseconds to find that out.
	_, _, _ = unix.RawSyscall(unix.SYS_SCHED_YIELD, 0, 0, 0)
	return true
}

// armAll prepares the links that were read since the last time for sleeping on their descriptors; the ones that
// have something to read already are read, and ready says that there were some.
func (l *loop) armAll() (ready bool) {
	links := l.read
	l.read = l.read[len(l.read):]
	for _, c := range links {
		c.touched = false
		if !c.ended && c.link.Arm() {
			ready = true
			c.readable()
		}
	}
	if len(l.read) == 0 {
		l.read = links[:0]
	}
	return ready
}

// poll waits for events, at most ms milliseconds. Without waiting it is a raw call that the scheduler does not see.
func (l *loop) poll(events []unix.EpollEvent, ms int) int {
	if ms == 0 {
		n, _, e := unix.RawSyscall6(unix.SYS_EPOLL_PWAIT, uintptr(l.epfd), uintptr(ptr(events)), uintptr(len(events)), 0, 0, 0)
		if e != 0 {
			return 0
		}
		return int(n)
	}
	n, err := unix.EpollWait(l.epfd, events, ms)
	if err != nil { // EINTR; nothing else with good arguments
		return 0
	}
	return n
}

func (l *loop) runInbox() (stopped bool) {
	var n [8]byte
	unix.Read(l.wake, n[:]) // EAGAIN is fine
	l.mu.Lock()
	work := l.inbox
	l.inbox, l.awake = nil, false
	l.mu.Unlock()
	for _, fn := range work {
		fn()
	}
	l.mu.Lock()
	stopped = l.done
	l.mu.Unlock()
	if stopped {
		for _, c := range l.conns {
			if c != nil {
				c.end(errStopped)
			}
		}
	}
	return stopped
}

// add takes a new link in.
func (l *loop) add(c *conn) error {
	slot := len(l.conns)
	if n := len(l.empty); n > 0 {
		slot = l.empty[n-1]
	}
	if slot >= writeFlag {
		return fmt.Errorf("too many links")
	}
	if err := l.ctl(unix.EPOLL_CTL_ADD, c.link.FD(), unix.EPOLLIN, slot); err != nil {
		return err
	}
	if c.link.WriteFD() != c.link.FD() {
		if err := l.ctl(unix.EPOLL_CTL_ADD, c.link.WriteFD(), 0, slot|writeFlag); err != nil {
			l.ctl(unix.EPOLL_CTL_DEL, c.link.FD(), 0, 0)
			return err
		}
	}
	if slot == len(l.conns) {
		l.conns = append(l.conns, c)
	} else {
		l.empty = l.empty[:len(l.empty)-1]
		l.conns[slot] = c
	}
	c.slot = slot
	return nil
}

// remove forgets a link; its descriptors are still open.
func (l *loop) remove(c *conn) {
	l.ctl(unix.EPOLL_CTL_DEL, c.link.FD(), 0, 0)
	if c.link.WriteFD() != c.link.FD() {
		l.ctl(unix.EPOLL_CTL_DEL, c.link.WriteFD(), 0, 0)
	}
	l.conns[c.slot] = nil
	l.empty = append(l.empty, c.slot)
}
