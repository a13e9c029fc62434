// Package splice passes bytes from one link to another in the kernel, by splice(2), without a copy
// in this process.
package splice

import (
	"fmt"
	"runtime"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/leidenzipper/zipper/internal/highfd"
	"github.com/leidenzipper/zipper/internal/transport"
)

// Link is a link whose bytes can be passed on to another such link. They wait in a Pipe in between.
// Concurrency is that of transport.Link.
type Link interface {
	transport.Link

	// TryFill moves up to n > 0 bytes of the stream to the end of p. Results are those of TryRead;
	// it also returns ErrAgain if p is full.
	TryFill(p *Pipe, n int) (int, error)

	// TryDrain writes the bytes in p, which must not be empty. Results are those of TryWrite: bytes
	// that were not taken stay in p.
	TryDrain(p *Pipe) (int, error)
}

// Pipe is a pipe of the kernel. Bytes that are moved to it from a socket stay where the kernel
// received them. It is not safe for concurrent use.
type Pipe struct {
	in, out int  // descriptors of the reading and writing end
	n       int  // number of bytes in the pipe
	quiet   bool // Drain raises no SIGPIPE (Quiet).
}

// NewPipe makes a pipe for size bytes in whole pages. The pipe has a slot for each page, but
// smaller pieces also take a slot each, so it may be full earlier. The error is the system's, which
// may not allow pipes of that size, or no more of them.
func NewPipe(size int) (*Pipe, error) {
	var fd [2]int
	if err := unix.Pipe2(fd[:], unix.O_CLOEXEC|unix.O_NONBLOCK); err != nil {
		return nil, fmt.Errorf("pipe: %w", err)
	}
	p := &Pipe{in: highfd.Raise(fd[1]), out: highfd.Raise(fd[0])}
	if _, err := unix.FcntlInt(uintptr(p.in), unix.F_SETPIPE_SZ, size); err != nil {
		p.Close()
		return nil, fmt.Errorf("pipe of %d bytes: %w", size, err)
	}
	return p, nil
}

// Quiet makes Drain raise no SIGPIPE when the connection is closed. It is for a process that may
// not ignore the signal, because other code in it decides about signals. It costs three short
// system calls each time.
func (p *Pipe) Quiet() { p.quiet = true }

// Len returns the number of bytes in the pipe.
func (p *Pipe) Len() int { return p.n }

// Write puts a copy of b, at most a page, into an empty pipe.
func (p *Pipe) Write(b []byte) error {
	n, err := unix.Write(p.in, b)
	p.n += max(n, 0)
	if err == nil && n < len(b) {
		err = syscall.EAGAIN
	}
	if err != nil {
		return fmt.Errorf("pipe: %w", err)
	}
	return nil
}

// Give puts b itself, not a copy, at the end of the pipe, as far as there is room. The bytes of b
// may only change when their old value is no longer needed, here or at the destination of the pipe.
// Memory that does not consist of pages is an error.
func (p *Pipe) Give(b []byte) error {
	iov := unix.Iovec{Base: unsafe.SliceData(b)}
	iov.SetLen(len(b))
	k, _, e := unix.RawSyscall6(unix.SYS_VMSPLICE, uintptr(p.in), uintptr(unsafe.Pointer(&iov)), 1,
		unix.SPLICE_F_NONBLOCK, 0, 0)
	if e != 0 && e != unix.EAGAIN && e != unix.EINTR {
		return fmt.Errorf("pipe: %w", e)
	}
	if e == 0 {
		p.n += int(k)
	}
	return nil
}

// Read removes len(b) bytes, which must be there, and copies them to b.
func (p *Pipe) Read(b []byte) error {
	for len(b) > 0 {
		n, err := unix.Read(p.out, b)
		if err == unix.EINTR {
			continue
		}
		if err == nil && n == 0 {
			err = syscall.EAGAIN
		}
		if err != nil {
			return fmt.Errorf("pipe: %w", err)
		}
		p.n -= n
		b = b[n:]
	}
	return nil
}

// The sockets do not block either, so the Go scheduler need not be told.
const nonblocking = unix.SPLICE_F_NONBLOCK | unix.SPLICE_F_MOVE

// Fill moves up to n bytes from a nonblocking socket. It returns 0 and no error at the end of the
// stream. It is for transports.
func (p *Pipe) Fill(fd, n int) (int, syscall.Errno) {
	k, _, e := unix.RawSyscall6(unix.SYS_SPLICE, uintptr(fd), 0, uintptr(p.in), 0, uintptr(n), nonblocking)
	if e != 0 {
		return 0, e
	}
	p.n += int(k)
	return int(k), 0
}

// Drain moves the bytes in the pipe to a nonblocking socket, as far as that takes them. It is for
// transports.
func (p *Pipe) Drain(fd int) (int, syscall.Errno) {
	if p.quiet {
		return p.drainQuietly(fd)
	}
	return p.drain(fd)
}

// drainQuietly is drain without a SIGPIPE for the process, which splice has no flag for: this
// thread blocks the signal, and removes it if it has been raised.
func (p *Pipe) drainQuietly(fd int) (int, syscall.Errno) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	const sigpipe = 1 << (unix.SIGPIPE - 1)
	block, before, now := uint64(sigpipe), uint64(0), unix.Timespec{}
	_, _, e := unix.RawSyscall6(unix.SYS_RT_SIGPROCMASK, unix.SIG_BLOCK, uintptr(unsafe.Pointer(&block)),
		uintptr(unsafe.Pointer(&before)), unsafe.Sizeof(block), 0, 0)
	if e != 0 || before&sigpipe != 0 {
		return p.drain(fd)
	}
	n, broken := p.drain(fd)
	if broken == unix.EPIPE {
		// If the kernel has raised no signal, there is none to remove.
		_, _, _ = unix.RawSyscall6(unix.SYS_RT_SIGTIMEDWAIT, uintptr(unsafe.Pointer(&block)), 0,
			uintptr(unsafe.Pointer(&now)), unsafe.Sizeof(block), 0, 0)
	}
	// It cannot fail, because the mask is one that the thread had.
	_, _, _ = unix.RawSyscall6(unix.SYS_RT_SIGPROCMASK, unix.SIG_SETMASK, uintptr(unsafe.Pointer(&before)), 0,
		unsafe.Sizeof(block), 0, 0)
	return n, broken
}

func (p *Pipe) drain(fd int) (int, syscall.Errno) {
	k, _, e := unix.RawSyscall6(unix.SYS_SPLICE, uintptr(p.out), 0, uintptr(fd), 0, uintptr(p.n), nonblocking)
	if e != 0 {
		return 0, e
	}
	p.n -= int(k)
	return int(k), 0
}

// Close frees the pipe and the bytes in it.
func (p *Pipe) Close() {
	unix.Close(p.in)
	unix.Close(p.out)
}
