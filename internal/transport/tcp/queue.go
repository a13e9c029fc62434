package tcp

import (
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/leidenzipper/zipper/internal/transport/standing"
)

// watch has the queue of a link's socket, and the data to ask the kernel seldom.
type watch struct {
	standing.Queue
	since time.Time // start of the clock of its samples
	never bool      // a bound could not be taken back: this kernel is older than 5.14
}

// wrote processes a write of n bytes. full says that the socket takes no more now.
func (w *watch) wrote(fd, n int, full bool) {
	if w.never || !w.Wrote(n, full) {
		return
	}
	var info unix.TCPInfo // x/sys's function for this allocates
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

// apply sets a changed bound in the kernel. was is the old one.
func (w *watch) apply(fd, was int) {
	now := w.Bound()
	if now == was {
		return
	}
	// Setting the size turns off its automatic growth. SO_BUF_LOCK undoes that.
	if was == 0 || now == 0 {
		w.never = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_BUF_LOCK, 0) != nil
	}
	if now > 0 && !w.never {
		w.never = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_SNDBUF, now/2) != nil // the kernel doubles the value
	}
	if w.never {
		w.Free()
	}
}
