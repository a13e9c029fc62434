package link

import (
	"golang.org/x/sys/unix"

	"github.com/leidenzipper/zipper/internal/transport"
	"github.com/leidenzipper/zipper/mmpi/engine/wait"
)

// readers finds out, by one system call, which of many links have something to read. The call takes
// as long for a hundred links as for one. Reading each link in turn, or poll, would take some 60 ns
// to 300 ns for each, before every look at the link that is in use.
type readers struct {
	system wait.System
	open   bool            // set has been made; it stays made until close.
	set    int             // descriptor that epoll_wait takes; -1: there is none
	rails  map[int32]*rail // registered rails, by descriptor of the link
	events [64]unix.EpollEvent
}

// look sets rail.readable of rails: it is true if the rail's link has something to read, or if that
// is unknown. It returns false if it cannot tell for any, because the process has no descriptor
// left, or the program has closed the one that is needed.
func (d *readers) look(rails []*rail) bool {
	if !d.open {
		d.open = true
		var err error
		if d.set, err = d.system.Epoll(); err != nil {
			d.set = -1
		}
		d.rails = map[int32]*rail{}
	}
	if d.set < 0 {
		return false
	}
	for _, r := range rails {
		r.readable = r.Linked() && r.readers == nil && !d.add(r)
	}
	n := d.system.Ready(d.set, d.events[:])
	for _, e := range d.events[:max(n, 0)] {
		if r := d.rails[e.Fd]; r != nil {
			r.readable = true
		}
	}
	if n < 0 {
		d.set = -1 // That number may be another file of the program now.
	}
	return n >= 0
}

// add registers the link of rail r, and reports whether that succeeded.
func (d *readers) add(r *rail) bool {
	fd := int32(r.link.FD())
	if d.system.Control(d.set, unix.EPOLL_CTL_ADD, int(fd), &unix.EpollEvent{Events: unix.EPOLLIN, Fd: fd}) != nil {
		return false
	}
	r.readers, d.rails[fd] = d, r
	return true
}

// forget ends the registration of link l, which is still open. The kernel does not do so by itself
// when the link is closed, if a child of the program shares its descriptor.
func (d *readers) forget(l transport.Link) {
	fd := l.FD()
	if r := d.rails[int32(fd)]; r == nil || r.link != l { // The program closed l, and the number is another link's.
		return
	}
	if delete(d.rails, int32(fd)); d.set >= 0 {
		// An error means that the program has closed a descriptor: there is nothing to end.
		_ = d.system.Control(d.set, unix.EPOLL_CTL_DEL, fd, nil)
	}
}

// close frees the set's descriptor. The links must be closed before.
func (d *readers) close() {
	if d.open && d.set >= 0 {
		d.system.Close(d.set)
		d.set = -1
	}
}
