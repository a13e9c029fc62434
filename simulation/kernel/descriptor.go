package kernel

import (
	"context"
	"time"

	"golang.org/x/sys/unix"
)

// descriptor is an object on which threads sleep: an event, a timer, a connection, or a set of
// others (epoll).
type descriptor struct {
	readable, writable func() bool
	// closed reports whether the other end has closed, broken whether the connection has failed.
	// Both are nil if that cannot happen.
	closed, broken func() bool
	set            bool // whether an event is signalled
	timer          *Timer
	sleepers       []*Thread
	epolls         []*interest
	epoll          *epoll
}

func (k *Kernel) open(d *descriptor) int {
	k.fds = append(k.fds, d)
	return len(k.fds) - 1
}

// fd returns the open descriptor with number n, or nil.
func (k *Kernel) fd(n int) *descriptor {
	if n < 0 || n >= len(k.fds) {
		return nil
	}
	return k.fds[n]
}

func never() bool { return false }

// ready returns those of the poll events that hold now.
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

// look fills in Revents and reports whether any event holds.
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

// mostLooks is how often a thread may poll without sleeping. A descriptor stays ready for ever if
// the thread does not handle it, so a thread that exceeds this is stuck.
const mostLooks = 20_000

// poll is ppoll for the running thread.
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

// leaves removes the thread from the descriptors on which it sleeps.
func (t *Thread) leaves() {
	for _, d := range t.on {
		d.forget(t)
	}
	t.on = t.on[:0]
}

// Event makes a descriptor that is readable from Signal until Drain.
func (k *Kernel) Event() (int, error) {
	d := &descriptor{writable: never}
	d.readable = func() bool { return d.set }
	return k.open(d), nil
}

// Timer makes an event that is signalled some time after SetTimer.
func (p *Process) Timer() (int, error) {
	k := p.k
	fd, err := k.Event()
	d := k.fds[fd]
	d.timer = &Timer{k: k, fn: func() { k.Signal(fd) }}
	return fd, err
}

// Signal makes an event readable.
func (k *Kernel) Signal(fd int) {
	if d := k.fd(fd); d != nil && !d.set {
		d.set = true
		d.changed()
	}
}

// Drain makes an event unreadable.
func (k *Kernel) Drain(fd int) {
	if d := k.fd(fd); d != nil {
		d.set = false
	}
}

// Close closes a descriptor.
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

// Now returns the virtual time.
func (s System) Now() time.Duration { return s.k.Now() }

// UntilMultiple returns the time until the next multiple of d.
func (s System) UntilMultiple(d time.Duration) time.Duration { return d - s.k.Now()%d }

// Go starts a thread and returns a function that waits for its end.
func (s System) Go(fn func(), _ bool) (join func()) { return s.Process.Go(fn).Join }

// Pause sleeps for d and reports whether ctx still holds.
func (s System) Pause(ctx context.Context, d time.Duration) bool {
	s.k.Sleep(d)
	return ctx.Err() == nil
}

// Hold polls while all other threads of the process stand still, as if the thread slept with the
// program's lock.
func (s System) Hold(set []unix.PollFd, d time.Duration) {
	p := s.Process
	p.holder = s.k.running
	s.k.poll(set, d)
	p.holder = nil
	p.release()
}

// Poll waits until an event of set holds, for up to d.
func (s System) Poll(set []unix.PollFd, d time.Duration, _ bool) { s.k.poll(set, d) }

// Event makes an event, as Kernel.Event does.
func (s System) Event() (int, error) { return s.k.Event() }

// Signal makes an event readable.
func (s System) Signal(fd int) { s.k.Signal(fd) }

// Drain makes an event unreadable.
func (s System) Drain(fd int) { s.k.Drain(fd) }

// Close closes a descriptor.
func (s System) Close(fd int) { s.k.Close(fd) }

// SetTimer sets the timer fd, so that it becomes readable after FlushAfter.
func (s System) SetTimer(fd int) {
	if d := s.k.fd(fd); d != nil {
		d.timer.Reset(s.FlushAfter)
	}
}
