package tcp

import (
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/leidenzipper/zipper/internal/transport/standing"
)

// watch is the queue of a link's socket, with what it takes to ask the kernel seldom.
type watch struct {
	standing.Queue
	since time.Time // the clock of its samples starts
	never bool      // a bound could not be taken back: this kernel is older than 5.14
}

// wrote follows a write of n bytes; full: the socket takes no more now.
func (w *watch) wrote(fd, n int, full bool) {
	if w.never || !w.Wrote(n, full) {
		return
	}
	var info unix.TCPInfo // what x/sys does for this allocates
	size := uint32(unsafe.Sizeof(info))
	if _, _, e := unix.RawSyscall6(unix.SYS_GETSOCKOPT, uintptr(fd), unix.IPPROTO_TCP, unix.TCP_INFO,
		uintptr(unsafe.Pointer(&info)), uintptr(unsafe.Pointer(&size)), 0); e != 0 {
		return
	}
	const us = time.Microsecond
	was := w.Bound()
	w.Measured(standing.Sample{At: time.Since(w.since), Acked: info.Bytes_acked,
		Busy: time.Duration(info.Busy_time) * us, Trip: time.Duration(info.Rtt) * us,
		Least: time.Duration(info.Min_rtt) * us})
	w.apply(fd, was)
}

// apply tells the kernel of a bound that was another.
func (w *watch) apply(fd, was int) {
	now := w.Bound()
	if now == was {
		return
	}
	// What sets the size turns off that it grows by itself, and is undone by SO_BUF_LOCK.
	if was == 0 || now == 0 {
		w.never = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_BUF_LOCK, 0) != nil
	}
	if now > 0 && !w.never {
		w.never = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_SNDBUF, now/2) != nil // the kernel doubles it
	}
	if w.never {
		w.Free()
	}
}
