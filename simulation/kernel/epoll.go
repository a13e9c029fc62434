package kernel

import (
	"time"

	"golang.org/x/sys/unix"
)

// epoll is a descriptor that watches others.
type epoll struct {
	k    *Kernel           // kernel whose descriptors are watched
	self *descriptor       // descriptor of the epoll, which is readable while an interest is ready
	all  map[int]*interest // interests by number of the watched descriptor
	// maybe has the interests to look at: those that have changed since they were last seen not
	// ready.
	maybe []*interest
}

type interest struct {
	e     *epoll          // epoll that has the interest
	d     *descriptor     // watched descriptor
	event unix.EpollEvent // watched events, and the data that Wait returns with them
	gone  bool            // the interest has been deleted
	maybe bool            // the interest is in epoll.maybe
}

// Epoll makes an epoll descriptor and returns its number. The error is always nil.
func (k *Kernel) Epoll() (int, error) {
	e := &epoll{k: k, all: map[int]*interest{}}
	e.self = &descriptor{readable: e.readable, writable: never, epoll: e}
	return k.open(e.self), nil
}

// ready returns those bits of the watched events, such as EPOLLIN, that hold now.
func (i *interest) ready() uint32 {
	if i.gone {
		return 0
	}
	return uint32(i.d.ready(int16(i.event.Events)))
}

// changed notes that the watched descriptor may be ready: it puts the interest into epoll.maybe and
// wakes the threads that wait for the epoll.
func (i *interest) changed() {
	if !i.maybe {
		i.maybe = true
		i.e.maybe = append(i.e.maybe, i)
	}
	i.e.self.changed()
}

// readable reports whether any interest is ready. It drops those before the first ready one from
// maybe.
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

// Control adds, changes or deletes the interest of the epoll descriptor epfd in descriptor fd,
// according to op (EPOLL_CTL_ADD, MOD or DEL), as epoll_ctl does.
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

// forget removes the interest from the list of its watched descriptor.
func (i *interest) forget() {
	i.gone = true
	for n, o := range i.d.epolls {
		if o == i {
			i.d.epolls = append(i.d.epolls[:n:n], i.d.epolls[n+1:]...)
			return
		}
	}
}

// Wait has the running thread sleep until a watched descriptor of epfd is ready, for up to ms
// milliseconds (not at all if ms is 0 or less). It fills in events in random order and returns
// their number, as epoll_wait does.
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
			// The rest is looked at first next time.
			e.maybe = append(e.maybe[at:len(e.maybe):len(e.maybe)], still...)
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
	for _, i := range e.all { // the order, which is random, has no effect: forget wakes no thread
		i.forget()
	}
}
