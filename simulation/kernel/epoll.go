package kernel

import (
	"slices"
	"time"

	"golang.org/x/sys/unix"
)

// epoll is a descriptor that tells of others.
type epoll struct {
	k    *Kernel
	self *descriptor
	list []*interest // as they were added
}

type interest struct {
	fd    int
	d     *descriptor
	event unix.EpollEvent
}

// Epoll makes one.
func (k *Kernel) Epoll() (int, error) {
	e := &epoll{k: k}
	e.self = &descriptor{writable: never, epoll: e}
	e.self.readable = func() bool { return slices.ContainsFunc(e.list, func(i *interest) bool { return i.ready() != 0 }) }
	return k.open(e.self), nil
}

func (i *interest) ready() uint32 { return uint32(i.d.ready(int16(i.event.Events))) }

// Control is epoll_ctl.
func (k *Kernel) Control(epfd, op, fd int, event *unix.EpollEvent) error {
	e, d := k.fds[epfd].epoll, k.fds[fd]
	at := slices.IndexFunc(e.list, func(i *interest) bool { return i.fd == fd })
	switch {
	case d == nil:
		return unix.EBADF
	case op == unix.EPOLL_CTL_ADD && at >= 0:
		return unix.EEXIST
	case op == unix.EPOLL_CTL_ADD:
		e.list = append(e.list, &interest{fd, d, *event})
		d.epolls = append(d.epolls, e)
	case at < 0:
		return unix.ENOENT
	case op == unix.EPOLL_CTL_MOD:
		e.list[at].event = *event
	default:
		e.list = slices.Delete(e.list, at, at+1)
		d.epolls = slices.DeleteFunc(d.epolls, func(o *epoll) bool { return o == e })
		return nil
	}
	e.self.changed()
	return nil
}

// Wait is epoll_wait by the running thread. Which of the ready ones come first is open.
func (k *Kernel) Wait(epfd int, events []unix.EpollEvent, ms int) (n int) {
	e := k.fds[epfd].epoll
	if ms > 0 {
		k.poll([]unix.PollFd{{Fd: int32(epfd), Events: unix.POLLIN}}, time.Duration(ms)*time.Millisecond,
			(*Thread).sleep)
	}
	for _, i := range e.list {
		if r := i.ready(); r != 0 && n < len(events) {
			events[n] = i.event
			events[n].Events = r
			n++
		}
	}
	k.Rand.Shuffle(n, func(i, j int) { events[i], events[j] = events[j], events[i] })
	return n
}

func (e *epoll) close() {
	for _, i := range e.list {
		i.d.epolls = slices.DeleteFunc(i.d.epolls, func(o *epoll) bool { return o == e })
	}
}
