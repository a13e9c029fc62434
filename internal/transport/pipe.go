package transport

import (
	"fmt"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/leidenzipper/zipper/internal/highfd"
)

// Piper is a Link whose bytes can go on over another such link without being copied to this process
// and back: they wait in a Pipe meanwhile. Concurrency is that of Link.
type Piper interface {
	Link

	// TryFill moves up to n > 0 bytes of the stream to the end of p. Results are those of TryRead;
	// ErrAgain also if p is full.
	TryFill(p *Pipe, n int) (int, error)

	// TryDrain writes what is in p, which is not empty. Results are those of TryWrite: what was not
	// taken stays in p.
	TryDrain(p *Pipe) (int, error)
}

// Pipe is one of the kernel's pipes. What is moved to it from a socket it holds where the kernel
// received it. Not safe for concurrent use.
type Pipe struct {
	in, out int // descriptors
	n       int // bytes in it
}

// NewPipe makes a pipe for size bytes in whole pages. It has a place for each page, but pieces that
// are smaller take a place too, so it may be full earlier. The system may allow no pipe of that
// size, or no more of them.
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

// Len is how many bytes are in the pipe.
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

// Give puts b itself, not a copy of it, at the end of the pipe, as far as there is room. What is in
// b may change only when nobody needs what was in it, here or where the pipe was drained to. Memory
// that is not made of pages is refused.
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

// Read takes len(b) bytes out, which must be there.
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

// nonblocking: neither the pipe nor the sockets block, so the scheduler need not know.
const nonblocking = unix.SPLICE_F_NONBLOCK | unix.SPLICE_F_MOVE

// Fill moves up to n bytes from a socket that does not block; 0 and no error at the stream's end.
// For transports.
func (p *Pipe) Fill(fd, n int) (int, syscall.Errno) {
	k, _, e := unix.RawSyscall6(unix.SYS_SPLICE, uintptr(fd), 0, uintptr(p.in), 0, uintptr(n), nonblocking)
	if e != 0 {
		return 0, e
	}
	p.n += int(k)
	return int(k), 0
}

// Drain moves what is in the pipe to a socket that does not block, as far as that takes it. For
// transports.
func (p *Pipe) Drain(fd int) (int, syscall.Errno) {
	k, _, e := unix.RawSyscall6(unix.SYS_SPLICE, uintptr(p.out), 0, uintptr(fd), 0, uintptr(p.n), nonblocking)
	if e != 0 {
		return 0, e
	}
	p.n -= int(k)
	return int(k), 0
}

// Close frees the pipe and what is in it.
func (p *Pipe) Close() {
	unix.Close(p.in)
	unix.Close(p.out)
}
