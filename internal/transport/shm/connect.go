package shm

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/leidenzipper/zipper/internal/highfd"
	"github.com/leidenzipper/zipper/internal/transport"
	"github.com/leidenzipper/zipper/internal/transport/internal/evfd"
)

// The hello is the message that the listener sends with the descriptors: a mark, the version of the
// memory's layout, and the size of a ring.
const (
	magic    = 0x5a53484d
	version  = 1
	helloLen = 16
)

// Listener accepts links at a unix socket. It is safe for concurrent use.
type Listener struct {
	l    *net.UnixListener
	size int
}

var _ transport.Listener = (*Listener)(nil)

// Listen accepts links at a path, which only this user may open. size is the size of each ring in
// bytes, a power of two of at least 4 KiB; 0 means DefaultSize. A socket that a dead process has
// left at the path is replaced.
func Listen(path string, size int) (*Listener, error) {
	if size == 0 {
		size = DefaultSize
	}
	if !fits(uint64(size)) {
		return nil, fmt.Errorf("shm: ring of %d bytes, want a power of two from %d to %d", size, minSize, maxSize)
	}
	addr := &net.UnixAddr{Name: path, Net: "unix"}
	l, err := bind(path)
	if errors.Is(err, unix.EADDRINUSE) {
		c, dialErr := net.DialUnix("unix", nil, addr)
		if dialErr == nil {
			c.Close()
		}
		if !errors.Is(dialErr, unix.ECONNREFUSED) { // such as that of a queue that is full
			return nil, fmt.Errorf("shm: %s: another forwarder listens here: %w", path, errors.Join(err, dialErr))
		}
		if st, statErr := os.Lstat(path); statErr == nil && st.Mode()&os.ModeSocket != 0 {
			os.Remove(path)
			l, err = bind(path)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("shm: %w", err)
	}
	return &Listener{l, size}, nil
}

// bind creates the socket with its permissions. If they were changed at its path afterwards, other
// users could connect before, and a link put in its place would be followed.
func bind(path string) (*net.UnixListener, error) {
	private := net.ListenConfig{Control: func(_, _ string, c syscall.RawConn) error {
		var failed error
		err := c.Control(func(fd uintptr) { failed = unix.Fchmod(int(fd), 0o600) })
		return errors.Join(err, failed)
	}}
	l, err := private.Listen(context.Background(), "unix", path)
	if err != nil {
		return nil, err
	}
	return l.(*net.UnixListener), nil
}

// Accept blocks until the next link.
func (l *Listener) Accept() (transport.Link, error) {
	for {
		c, err := l.l.AcceptUnix()
		if errors.Is(err, net.ErrClosed) {
			return nil, transport.ErrClosed
		}
		if err != nil {
			return nil, err
		}
		link, err := l.serve(c)
		if err == nil {
			return link, nil
		}
		c.Close()
		// These errors are the dialer's fault.
		if !errors.Is(err, unix.EPIPE) && !errors.Is(err, os.ErrDeadlineExceeded) {
			return nil, err
		}
	}
}

// Addr returns the path.
func (l *Listener) Addr() string { return l.l.Addr().String() }

// Close ends Accept and removes the path. Accepted links stay open.
func (l *Listener) Close() error { return l.l.Close() }

// serve creates the shared objects of a link and sends them to the dialer.
func (l *Listener) serve(c *net.UnixConn) (transport.Link, error) {
	memfd, err := unix.MemfdCreate("zipper-link", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	if err != nil {
		return nil, fmt.Errorf("shm: memfd: %w", err)
	}
	defer unix.Close(memfd)
	n := total(l.size)
	if err := unix.Ftruncate(memfd, int64(n)); err != nil {
		return nil, fmt.Errorf("shm: memfd of %d bytes: %w", n, err)
	}
	// The seals keep either end from removing the memory from under the other.
	if _, err := unix.FcntlInt(uintptr(memfd), unix.F_ADD_SEALS,
		unix.F_SEAL_SHRINK|unix.F_SEAL_GROW|unix.F_SEAL_SEAL); err != nil {
		return nil, fmt.Errorf("shm: seal: %w", err)
	}
	var fds [4]evfd.FD
	made := 0
	undo := func() {
		for _, fd := range fds[:made] {
			fd.Close()
		}
	}
	for ; made < len(fds); made++ {
		if fds[made], err = evfd.New(); err != nil {
			undo()
			return nil, err
		}
	}
	mem, err := mmap(memfd, n)
	if err != nil {
		undo()
		return nil, err
	}
	var hello [helloLen]byte
	binary.LittleEndian.PutUint32(hello[0:], magic)
	binary.LittleEndian.PutUint32(hello[4:], version)
	binary.LittleEndian.PutUint64(hello[8:], uint64(l.size))
	rights := unix.UnixRights(memfd, int(fds[0]), int(fds[1]), int(fds[2]), int(fds[3]))
	c.SetWriteDeadline(time.Now().Add(handOver))
	if _, _, err := c.WriteMsgUnix(hello[:], rights, nil); err != nil {
		undo()
		unix.Munmap(mem)
		return nil, fmt.Errorf("shm: hand over: %w", err)
	}
	remote := fmt.Sprintf("shm %s (%s)", l.Addr(), peer(c))
	conn, err := highSocket(c)
	if err != nil {
		undo()
		unix.Munmap(mem)
		return nil, fmt.Errorf("shm: %w", err)
	}
	c.Close()
	return newLink(mem, true, fds, conn, remote), nil
}

// peer returns a name for the process at the other end.
func peer(c *net.UnixConn) string {
	name := "unknown process"
	if raw, err := c.SyscallConn(); err == nil {
		_ = raw.Control(func(fd uintptr) {
			if u, err := unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED); err == nil {
				name = fmt.Sprintf("process %d", u.Pid)
			}
		})
	}
	return name
}

// Dialer opens links to a listener's path. The zero value works. It is safe for concurrent use.
type Dialer struct{}

var _ transport.Dialer = Dialer{}

// Dial connects. The context bounds the time.
func (Dialer) Dial(ctx context.Context, path string) (transport.Link, error) {
	var d net.Dialer
	nc, err := d.DialContext(ctx, "unix", path)
	if err != nil {
		return nil, err
	}
	c := nc.(*net.UnixConn)
	stop := context.AfterFunc(ctx, func() { c.SetReadDeadline(time.Now()) })
	l, err := receive(c, path)
	if !stop() && err == nil {
		l.Close()
		return nil, ctx.Err()
	}
	if err != nil {
		c.Close()
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		return nil, fmt.Errorf("shm %s: %w", path, err)
	}
	return l, nil
}

func receive(c *net.UnixConn, path string) (*link, error) {
	var hello [helloLen]byte
	oob := make([]byte, unix.CmsgSpace(5*4))
	n, oobn, _, _, err := c.ReadMsgUnix(hello[:], oob)
	if err != nil {
		return nil, err
	}
	fds, err := rights(oob[:oobn])
	if err != nil {
		return nil, err
	}
	fail := func(format string, a ...any) (*link, error) {
		for _, fd := range fds {
			unix.Close(fd)
		}
		return nil, fmt.Errorf(format, a...)
	}
	size := binary.LittleEndian.Uint64(hello[8:])
	switch {
	case n != helloLen || binary.LittleEndian.Uint32(hello[0:]) != magic || len(fds) != 5:
		return fail("this is not a forwarder's socket")
	case binary.LittleEndian.Uint32(hello[4:]) != version:
		return fail("version %d there, %d here: use the same release at both ends",
			binary.LittleEndian.Uint32(hello[4:]), version)
	case !fits(size):
		return fail("ring of %d bytes", size)
	}
	var st unix.Stat_t
	seals, err := unix.FcntlInt(uintptr(fds[0]), unix.F_GET_SEALS, 0)
	if err != nil || seals&unix.F_SEAL_SHRINK == 0 {
		return fail("the shared memory is not sealed against shrinking (%v)", err)
	}
	if err := unix.Fstat(fds[0], &st); err != nil || st.Size != int64(total(int(size))) {
		return fail("the shared memory has %d bytes, want %d (%v)", st.Size, total(int(size)), err)
	}
	mem, err := mmap(fds[0], total(int(size)))
	if err != nil {
		return fail("%w", err)
	}
	conn, err := highSocket(c)
	if err != nil {
		unix.Munmap(mem)
		return fail("%w", err)
	}
	c.Close()
	unix.Close(fds[0])
	return newLink(mem, false, [4]evfd.FD{evfd.FD(fds[1]), evfd.FD(fds[2]), evfd.FD(fds[3]), evfd.FD(fds[4])}, conn,
		"shm "+path), nil
}

// rights returns the descriptors of a control message, moved to numbers that the program does not
// use.
func rights(oob []byte) ([]int, error) {
	msgs, err := unix.ParseSocketControlMessage(oob)
	if err != nil {
		return nil, fmt.Errorf("control message: %w", err)
	}
	var fds []int
	for i := range msgs {
		got, err := unix.ParseUnixRights(&msgs[i])
		if err != nil {
			continue // another kind of message
		}
		fds = append(fds, got...)
	}
	for i, fd := range fds {
		fds[i] = highfd.Raise(fd)
		unix.CloseOnExec(fds[i]) // also if no high number was left
	}
	return fds, nil
}

// highSocket returns a connection's socket as a file, moved to a number that the program does not
// use.
func highSocket(c *net.UnixConn) (*os.File, error) {
	fd, err := highfd.DupOf(c)
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fd), "socket"), nil // it does not block, because the flag belongs to the description
}

func total(size int) int { return 2 * (offBytes + size) }

func mmap(fd, n int) ([]byte, error) {
	mem, err := unix.Mmap(fd, 0, n, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return nil, fmt.Errorf("shm: map %d bytes: %w", n, err)
	}
	return mem, nil
}
