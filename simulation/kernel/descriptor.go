package kernel

import (
	"context"
	"time"

	"golang.org/x/sys/unix"
)

// descriptor is an object on which threads sleep: an event, a timer, a connection, or a set of
// others (epoll).
type descriptor struct {
	readable, writable func() bool // report whether a read or write would not block
	// closed reports whether the other end has closed or the connection has failed, broken whether
	// it has failed. Both are nil for descriptors that are not connections.
	closed, broken func() bool
	set            bool        // whether an event is signalled
	timer          *Timer      // timer that signals the event; nil if it is none
	sleepers       []*Thread   // threads that sleep until one of their events holds
	epolls         []*interest // interests of epoll descriptors in this descriptor
	epoll          *epoll      // the epoll descriptor itself; nil if it is none
}

func (k *Kernel) open(d *descriptor) int {
	k.fds = append(k.fds, d)
	return len(k.fds) - 1
}

// fd returns the open descriptor with number n, or nil if there is none.
func (k *Kernel) fd(n int) *descriptor {
	if n < 0 || n >= len(k.fds) {
		return nil
	}
	return k.fds[n]
}

func never() bool { return false }

// ready returns those bits of events, a set of poll events such as POLLIN, that hold now.
func (d *descriptor) ready(events int16) (r int16) {
	if events&unix.POLLIN != 0 && d.readable() {
		r |= unix.POLLIN
	}
	if events&unix.POLLOUT != 0 && d.writable() {
		r |= unix.POLLOUT
	}
	if events&unix.POLLRDHUP != 0 && d.closed != nil && d.closed() {
		r |= unix.POLLRDHUP
	}
	if d.broken != nil && d.broken() {
		r |= unix.POLLHUP // reported without being asked for, as by ppoll
	}
	return r
}

// changed wakes the threads that sleep on the descriptor. They check for themselves whether they
// are concerned.
func (d *descriptor) changed() {
	for _, t := range d.sleepers {
		t.wake()
	}
	for _, i := range d.epolls {
		i.changed()
	}
}

func (d *descriptor) forget(t *Thread) {
	for i, s := range d.sleepers {
		if s == t {
			d.sleepers = append(d.sleepers[:i], d.sleepers[i+1:]...)
			return
		}
	}
}

// look sets Revents of every element of set to the events that hold now, and reports whether there
// is any.
func (k *Kernel) look(set []unix.PollFd) (found bool) {
	for i := range set {
		p := &set[i]
		p.Revents = 0
		if d := k.fd(int(p.Fd)); d != nil {
			p.Revents = d.ready(p.Events)
		} else if p.Fd >= 0 {
			p.Revents = unix.POLLNVAL
		}
		found = found || p.Revents != 0
	}
	return found
}

// mostLooks is how often a thread may poll without sleeping, between two events of the kernel. A
// descriptor stays ready for ever if the thread does not handle it, so a thread that exceeds this
// is stuck.
const mostLooks = 20_000

// poll has the running thread sleep until an event of set holds or d is over, and sets Revents.
// With a d of 0 or less it does not sleep.
func (k *Kernel) poll(set []unix.PollFd, d time.Duration) {
	t := k.running
	t.catchUp()
	if k.look(set) || d <= 0 {
		if k.looks++; k.looks > mostLooks {
			k.stuck = t.p.Name
			t.sleep(-1)
		}
		return
	}
	for i := range set {
		if d := k.fd(int(set[i].Fd)); d != nil {
			d.sleepers = append(d.sleepers, t)
			t.on = append(t.on, d)
		}
	}
	defer t.leaves()
	for end := k.now + d; !k.look(set) && k.now < end; {
		t.sleep(end - k.now)
	}
}

// leaves removes thread t from the sleepers of all descriptors on which it sleeps.
func (t *Thread) leaves() {
	for _, d := range t.on {
		d.forget(t)
	}
	t.on = t.on[:0]
}

// Event makes an event and returns the number of its descriptor, which is readable from a call of
// Signal until one of Drain. The error is always nil.
func (k *Kernel) Event() (int, error) {
	d := &descriptor{writable: never}
	d.readable = func() bool { return d.set }
	return k.open(d), nil
}

// Timer makes an event that becomes readable some time after System.SetTimer, and returns the
// number of its descriptor. The error is always nil.
func (p *Process) Timer() (int, error) {
	k := p.k
	fd, err := k.Event()
	d := k.fds[fd]
	d.timer = &Timer{k: k, fn: func() { k.Signal(fd) }}
	return fd, err
}

// Signal makes the event with descriptor number fd readable.
func (k *Kernel) Signal(fd int) {
	if d := k.fd(fd); d != nil && !d.set {
		d.set = true
		d.changed()
	}
}

// Drain makes the event with descriptor number fd unreadable.
func (k *Kernel) Drain(fd int) {
	if d := k.fd(fd); d != nil {
		d.set = false
	}
}

// Close closes the descriptor with number fd. It does nothing if no descriptor with this number is
// open.
func (k *Kernel) Close(fd int) {
	if d := k.fd(fd); d != nil {
		if d.epoll != nil {
			d.epoll.close()
		}
		k.fds[fd] = nil
	}
}

// System presents a process to package wait as its operating system.
type System struct {
	*Process
	FlushAfter time.Duration // delay between SetTimer and its event
}

// Now returns the virtual time since the start of the world.
func (s System) Now() time.Duration { return s.k.Now() }

// UntilMultiple returns the time from now until the next multiple of d in virtual time.
func (s System) UntilMultiple(d time.Duration) time.Duration { return d - s.k.Now()%d }

// Go starts a thread of the process that calls fn, and returns a function that waits for its end.
// The bool has no effect.
func (s System) Go(fn func(), _ bool) (join func()) { return s.Process.Go(fn).Join }

// Pause has the running thread sleep for d, and reports whether ctx is still neither cancelled nor
// expired after that.
func (s System) Pause(ctx context.Context, d time.Duration) bool {
	s.k.Sleep(d)
	return ctx.Err() == nil
}

// Hold is Poll, but all other threads of the process stand still meanwhile, as if the running
// thread slept while it held the lock that all program threads need.
func (s System) Hold(set []unix.PollFd, d time.Duration) {
	p := s.Process
	p.holder = s.k.running
	s.k.poll(set, d)
	p.holder = nil
	p.release()
}

// Poll has the running thread sleep until an event of set holds, for up to d, and sets Revents.
// With a d of 0 or less it does not sleep. The bool has no effect.
func (s System) Poll(set []unix.PollFd, d time.Duration, _ bool) { s.k.poll(set, d) }

// Epoll makes an epoll descriptor and returns its number, as Kernel.Epoll does.
func (s System) Epoll() (int, error) { return s.k.Epoll() }

// Control changes the interest of an epoll descriptor, as Kernel.Control does.
func (s System) Control(epfd, op, fd int, e *unix.EpollEvent) error {
	return s.k.Control(epfd, op, fd, e)
}

// Ready is Kernel.Wait without a wait.
func (s System) Ready(epfd int, events []unix.EpollEvent) int { return s.k.Wait(epfd, events, 0) }

// Event makes an event and returns its descriptor number, as Kernel.Event does.
func (s System) Event() (int, error) { return s.k.Event() }

// Signal makes the event with descriptor number fd readable.
func (s System) Signal(fd int) { s.k.Signal(fd) }

// Drain makes the event with descriptor number fd unreadable.
func (s System) Drain(fd int) { s.k.Drain(fd) }

// Close closes the descriptor with number fd. It does nothing if no descriptor with this number is
// open.
func (s System) Close(fd int) { s.k.Close(fd) }

// SetTimer starts the timer with descriptor number fd, so that it becomes readable after
// FlushAfter.
func (s System) SetTimer(fd int) {
	if d := s.k.fd(fd); d != nil {
		d.timer.Reset(s.FlushAfter)
	}
}
