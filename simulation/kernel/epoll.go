package kernel

import (
	"time"

	"golang.org/x/sys/unix"
)

// epoll is a descriptor that tells of others.
type epoll struct {
	k     *Kernel
	self  *descriptor
	all   map[int]*interest
	maybe []*interest // those that may be ready: what has changed since it was found not to be
}

type interest struct {
	e     *epoll
	d     *descriptor
	event unix.EpollEvent
	gone  bool
	maybe bool // it is in epoll.maybe
}

// Epoll makes one.
func (k *Kernel) Epoll() (int, error) {
	e := &epoll{k: k, all: map[int]*interest{}}
	e.self = &descriptor{readable: e.readable, writable: never, epoll: e}
	return k.open(e.self), nil
}

// ready is what of it holds.
func (i *interest) ready() uint32 {
	if i.gone {
		return 0
	}
	return uint32(i.d.ready(int16(i.event.Events)))
}

// changed has it looked at.
func (i *interest) changed() {
	if !i.maybe {
		i.maybe = true
		i.e.maybe = append(i.e.maybe, i)
	}
	i.e.self.changed()
}

// readable reports whether anything is ready; what is not before that is not looked at again.
func (e *epoll) readable() bool {
	for n, i := range e.maybe {
		if i.ready() != 0 {
			e.maybe = e.maybe[n:]
			return true
		}
		i.maybe = false
	}
	e.maybe = nil
	return false
}

// Control is epoll_ctl.
func (k *Kernel) Control(epfd, op, fd int, event *unix.EpollEvent) error {
	e, d := k.fds[epfd].epoll, k.fd(fd)
	i := e.all[fd]
	switch {
	case d == nil:
		return unix.EBADF
	case op == unix.EPOLL_CTL_ADD && i != nil:
		return unix.EEXIST
	case op == unix.EPOLL_CTL_ADD:
		i = &interest{e: e, d: d, event: *event}
		e.all[fd] = i
		d.epolls = append(d.epolls, i)
	case i == nil:
		return unix.ENOENT
	case op == unix.EPOLL_CTL_MOD:
		i.event = *event
	default:
		delete(e.all, fd)
		i.forget()
		return nil
	}
	i.changed()
	return nil
}

// forget takes it from its descriptor.
func (i *interest) forget() {
	i.gone = true
	for n, o := range i.d.epolls {
		if o == i {
			i.d.epolls = append(i.d.epolls[:n:n], i.d.epolls[n+1:]...)
			return
		}
	}
}

// Wait is epoll_wait by the running thread. Which of the ready ones come first is open.
func (k *Kernel) Wait(epfd int, events []unix.EpollEvent, ms int) (n int) {
	e := k.fds[epfd].epoll
	if ms > 0 {
		k.poll([]unix.PollFd{{Fd: int32(epfd), Events: unix.POLLIN}}, time.Duration(ms)*time.Millisecond)
	} else {
		k.running.catchUp()
	}
	still := e.maybe[:0:0]
	for at, i := range e.maybe {
		r := i.ready()
		switch {
		case n == len(events):
			e.maybe = append(e.maybe[at:len(e.maybe):len(e.maybe)], still...) // the others are next
			k.shuffle(events)
			return n
		case r != 0:
			events[n] = i.event
			events[n].Events = r
			n++
			still = append(still, i)
		default:
			i.maybe = false
		}
	}
	e.maybe = still
	k.shuffle(events[:n])
	return n
}

func (k *Kernel) shuffle(events []unix.EpollEvent) {
	k.Rand.Shuffle(len(events), func(i, j int) { events[i], events[j] = events[j], events[i] })
}

func (e *epoll) close() {
	for _, i := range e.all { // in any order: nothing happens by it
		i.forget()
	}
}
