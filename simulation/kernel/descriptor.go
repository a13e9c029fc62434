package kernel

import (
	"context"
	"time"

	"golang.org/x/sys/unix"
)

// descriptor is what threads sleep on: an event, a timer, a connection, or others (epoll).
type descriptor struct {
	readable, writable func() bool
	closed, broken     func() bool // by the other end, or for good; nil: never
	set                bool        // of an event
	timer              *Timer
	sleepers           []*Thread
	epolls             []*interest
	epoll              *epoll
}

func (k *Kernel) open(d *descriptor) int {
	k.fds = append(k.fds, d)
	return len(k.fds) - 1
}

// fd is a descriptor that is open; nil: it is not.
func (k *Kernel) fd(n int) *descriptor {
	if n < 0 || n >= len(k.fds) {
		return nil
	}
	return k.fds[n]
}

func never() bool { return false }

// ready is which of some poll events hold.
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
		r |= unix.POLLHUP // nobody has to ask
	}
	return r
}

// changed wakes who sleeps on the descriptor, who looks for himself.
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

// look fills in Revents.
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

// mostLooks is how often a thread may look at its descriptors without sleeping: one on which nobody
// does what it asks for is ready for ever.
const mostLooks = 20_000

// poll is ppoll by the running thread.
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

// leaves has the thread sleep on nothing.
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

// Timer makes an event that SetTimer signals, later.
func (p *Process) Timer() (int, error) {
	k := p.k
	fd, err := k.Event()
	d := k.fds[fd]
	d.timer = &Timer{k: k, fn: func() { k.Signal(fd) }}
	return fd, err
}

// Signal sets an event.
func (k *Kernel) Signal(fd int) {
	if d := k.fd(fd); d != nil && !d.set {
		d.set = true
		d.changed()
	}
}

// Drain takes an event back.
func (k *Kernel) Drain(fd int) {
	if d := k.fd(fd); d != nil {
		d.set = false
	}
}

// Close frees a descriptor.
func (k *Kernel) Close(fd int) {
	if d := k.fd(fd); d != nil {
		if d.epoll != nil {
			d.epoll.close()
		}
		k.fds[fd] = nil
	}
}

// System is a process's kernel as package wait wants it.
type System struct {
	*Process
	FlushAfter time.Duration // of timers
}

// Now is the virtual time.
func (s System) Now() time.Duration { return s.k.Now() }

// UntilMultiple is until then.
func (s System) UntilMultiple(d time.Duration) time.Duration { return d - s.k.Now()%d }

// Go starts a thread.
func (s System) Go(fn func(), _ bool) (join func()) { return s.Process.Go(fn).Join }

// Pause sleeps.
func (s System) Pause(ctx context.Context, d time.Duration) bool {
	s.k.Sleep(d)
	return ctx.Err() == nil
}

// Hold sleeps while no other thread of the process goes on.
func (s System) Hold(set []unix.PollFd, d time.Duration) {
	p := s.Process
	p.holder = s.k.running
	s.k.poll(set, d)
	p.holder = nil
	p.release()
}

// Poll sleeps.
func (s System) Poll(set []unix.PollFd, d time.Duration, _ bool) { s.k.poll(set, d) }

// Event, Signal, Drain and Close are the kernel's.
func (s System) Event() (int, error) { return s.k.Event() }

// Signal sets an event.
func (s System) Signal(fd int) { s.k.Signal(fd) }

// Drain takes it back.
func (s System) Drain(fd int) { s.k.Drain(fd) }

// Close frees a descriptor.
func (s System) Close(fd int) { s.k.Close(fd) }

// SetTimer sets a timer.
func (s System) SetTimer(fd int) {
	if d := s.k.fd(fd); d != nil {
		d.timer.Reset(s.FlushAfter)
	}
}
