// Package tcp is the transport over TCP sockets: raw, nonblocking, without delay, outside of Go's
// netpoller, so that the thread that waits for a message is the thread that reads it.
//
// Addresses are "host:port". Errors name the peer and wrap the kernel's error number. Concurrency
// is that of transport.Link.
package tcp

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"net/netip"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/leidenzipper/zipper/internal/highfd"
	"github.com/leidenzipper/zipper/internal/transport"
	"github.com/leidenzipper/zipper/internal/transport/internal/fdref"
	"github.com/leidenzipper/zipper/internal/transport/splice"
)

type link struct {
	fd     int
	ref    fdref.Ref
	remote string
	there  netip.Addr
	watch  watch // used by the writer
}

var (
	_ transport.Listening = (*link)(nil)
	_ splice.Link         = (*link)(nil)
	_ transport.Packeted  = (*link)(nil)
	_ transport.Homed     = (*link)(nil)
	_ transport.Distant   = (*link)(nil)
)

func (l *link) TryRead(p []byte) (int, error) {
	if !l.ref.Acquire() {
		return 0, transport.ErrClosed
	}
	// The call is raw: the socket does not block, so the Go scheduler need not be told.
	n, _, e := unix.RawSyscall6(unix.SYS_RECVFROM, uintptr(l.fd), uintptr(unsafe.Pointer(unsafe.SliceData(p))),
		uintptr(len(p)), unix.MSG_DONTWAIT, 0, 0)
	l.ref.Release()
	if n == 0 && len(p) == 0 {
		return 0, nil
	}
	return l.read(int(n), e)
}

// read converts the kernel's result to that of TryRead.
func (l *link) read(n int, e syscall.Errno) (int, error) {
	switch {
	case e == unix.EAGAIN || e == unix.EINTR:
		return 0, transport.ErrAgain
	case e != 0:
		return 0, l.fail("read", e)
	case n == 0:
		return 0, io.EOF
	}
	return n, nil
}

func (l *link) TryFill(p *splice.Pipe, n int) (int, error) {
	if !l.ref.Acquire() {
		return 0, transport.ErrClosed
	}
	k, e := p.Fill(l.fd, n)
	l.ref.Release()
	return l.read(k, e)
}

func (l *link) TryDrain(p *splice.Pipe) (int, error) {
	if !l.ref.Acquire() {
		return 0, transport.ErrClosed
	}
	n, e := p.Drain(l.fd)
	l.ref.Release()
	return l.written(n, e)
}

func (l *link) TryWrite(bufs ...[]byte) (int, error) {
	// This is the case of most messages. With a list of one slice the kernel and this function take
	// longer.
	if len(bufs) == 1 && len(bufs[0]) > 0 {
		return l.writeOne(bufs[0])
	}
	var vec [maxVec]unix.Iovec
	k := 0
	for _, b := range bufs {
		if len(b) == 0 {
			continue
		}
		if k == maxVec {
			break
		}
		vec[k].Base = unsafe.SliceData(b)
		vec[k].SetLen(len(b))
		k++
	}
	if k == 0 {
		return 0, nil
	}
	if !l.ref.Acquire() {
		return 0, transport.ErrClosed
	}
	msg := unix.Msghdr{Iov: &vec[0]}
	msg.SetIovlen(k)
	n, _, e := unix.RawSyscall(unix.SYS_SENDMSG, uintptr(l.fd), uintptr(unsafe.Pointer(&msg)),
		unix.MSG_DONTWAIT|unix.MSG_NOSIGNAL)
	l.ref.Release()
	return l.written(int(n), e)
}

func (l *link) writeOne(p []byte) (int, error) {
	if !l.ref.Acquire() {
		return 0, transport.ErrClosed
	}
	n, _, e := unix.RawSyscall6(unix.SYS_SENDTO, uintptr(l.fd), uintptr(unsafe.Pointer(unsafe.SliceData(p))),
		uintptr(len(p)), unix.MSG_DONTWAIT|unix.MSG_NOSIGNAL, 0, 0)
	l.ref.Release()
	return l.written(int(n), e)
}

// written converts the kernel's result to that of TryWrite.
func (l *link) written(n int, e syscall.Errno) (int, error) {
	switch e {
	case 0:
		l.watched(n, false)
		return n, nil
	case unix.EAGAIN, unix.EINTR, unix.ENOBUFS:
		l.watched(0, true)
		return 0, transport.ErrAgain
	}
	return 0, l.fail("write", e)
}

func (l *link) watched(n int, full bool) {
	if l.ref.Acquire() {
		l.watch.wrote(l.fd, n, full)
		l.ref.Release()
	}
}

func (l *link) Bottleneck() float64 { return l.watch.Bottleneck() }

// Unheard uses TCP's acknowledgements, which the peer's kernel sends while the process is stopped.
// A closed window does not count as an unanswered segment, because its probes are answered.
func (l *link) Unheard() (time.Duration, bool) {
	if !l.ref.Acquire() {
		return 0, false
	}
	info, err := unix.GetsockoptTCPInfo(l.fd, unix.IPPROTO_TCP, unix.TCP_INFO)
	l.ref.Release()
	if err != nil || info.Unacked == 0 || info.Retransmits < repeats {
		return 0, err == nil
	}
	return time.Duration(info.Last_ack_recv) * time.Millisecond, true
}

// Packet returns the size of the largest packet that Linux makes (offload): as many whole segments
// of the network as fit, of the size that the socket uses now.
func (l *link) Packet() int {
	if !l.ref.Acquire() {
		return 0
	}
	mss, err := unix.GetsockoptInt(l.fd, unix.IPPROTO_TCP, unix.TCP_MAXSEG)
	l.ref.Release()
	if err != nil || mss <= 0 {
		return 0
	}
	return max(offload/mss, 1) * mss
}

// Path returns TCP's measurements.
func (l *link) Path() (p transport.Path, known bool) {
	if !l.ref.Acquire() {
		return p, false
	}
	defer l.ref.Release()
	info, err := unix.GetsockoptTCPInfo(l.fd, unix.IPPROTO_TCP, unix.TCP_INFO)
	if err != nil || info.Min_rtt == math.MaxUint32 {
		return p, false
	}
	const us = time.Microsecond
	p = transport.Path{RoundTrip: time.Duration(info.Min_rtt) * us, Busy: time.Duration(info.Busy_time) * us,
		Short: time.Duration(info.Rwnd_limited+info.Sndbuf_limited) * us,
		Sent:  uint64(info.Data_segs_out), Repeated: uint64(info.Total_retrans)}
	p.Congestion, _ = unix.GetsockoptString(l.fd, unix.IPPROTO_TCP, unix.TCP_CONGESTION) // empty if unknown
	return p, true
}

// UseLongPath selects BBR where it is allowed. BBR fills a long path in spite of packet loss.
func (l *link) UseLongPath() {
	if l.ref.Acquire() {
		// If this fails the system's own algorithm works, too.
		_ = unix.SetsockoptString(l.fd, unix.IPPROTO_TCP, unix.TCP_CONGESTION, pacing)
		l.ref.Release()
	}
}

func (l *link) fail(op string, e syscall.Errno) error {
	return fmt.Errorf("%s %s: %w", op, l.remote, e)
}

// Home returns the addresses without the zone of a link-local address. On a closed link this end's
// address is not known.
func (l *link) Home() (here, there netip.Addr) {
	if l.ref.Acquire() {
		if at, err := unix.Getsockname(l.fd); err == nil {
			here = place(at)
		}
		l.ref.Release()
	}
	return here.WithZone(""), l.there
}

func (l *link) FD() int        { return l.fd }
func (l *link) WriteFD() int   { return l.fd }
func (l *link) Arm() bool      { return false }
func (l *link) Remote() string { return l.remote }

func (l *link) Close() error {
	l.ref.Close()
	return nil
}

// dialled moves a connection out of Go's netpoller.
func dialled(c *net.TCPConn) (*link, error) {
	defer c.Close()
	if err := prepare(c); err != nil {
		return nil, err
	}
	fd, err := highfd.DupOf(c)
	if err != nil {
		return nil, fmt.Errorf("prepare socket: %w", err)
	}
	return newLink(fd, c.RemoteAddr().(*net.TCPAddr).AddrPort()), nil
}

// newLink creates a link that owns a connected socket. The socket must not block, and must have a
// number that the program does not use.
func newLink(fd int, remote netip.AddrPort) *link {
	remote = netip.AddrPortFrom(remote.Addr().Unmap(), remote.Port())
	l := &link{fd: fd, remote: "tcp " + remote.String(), there: remote.Addr().WithZone(""),
		watch: watch{since: time.Now()}}
	l.ref.Free = func() { unix.Close(fd) }
	return l
}

// prepare sets a socket's options. Accepted connections inherit them from the listening socket.
func prepare(c syscall.Conn) error {
	raw, err := c.SyscallConn()
	if err != nil {
		return err
	}
	var set error
	err = raw.Control(func(s uintptr) {
		set = errors.Join(unix.SetsockoptInt(int(s), unix.IPPROTO_TCP, unix.TCP_NODELAY, 1),
			unix.SetsockoptInt(int(s), unix.SOL_SOCKET, unix.SO_KEEPALIVE, 0),
			unix.SetsockoptInt(int(s), unix.IPPROTO_TCP, unix.TCP_NOTSENT_LOWAT, Unsent))
	})
	if err = errors.Join(err, set); err != nil {
		return fmt.Errorf("prepare socket: %w", err)
	}
	return nil
}

// place returns the address in x/sys's form of a socket address.
func place(s unix.Sockaddr) (addr netip.Addr) {
	switch a := s.(type) {
	case *unix.SockaddrInet4:
		return netip.AddrFrom4(a.Addr)
	case *unix.SockaddrInet6:
		return scoped(a.Addr, a.ZoneId)
	}
	return addr
}

// scoped returns an IPv6 address with its interface if it is link-local, or the IPv4 address in it.
func scoped(a [16]byte, index uint32) netip.Addr {
	addr := netip.AddrFrom16(a).Unmap()
	if index != 0 && addr.Is6() {
		addr = addr.WithZone(zone(int(index)))
	}
	return addr
}

// zone returns the name of a network interface.
func zone(index int) string {
	if i, err := net.InterfaceByIndex(index); err == nil {
		return i.Name
	}
	return strconv.Itoa(index)
}

// unpaced removes pacing from a socket that is neither connected nor listening yet. A socket that
// BBR has begun to pace is paced under other algorithms, too.
func unpaced(_, _ string, c syscall.RawConn) error {
	return c.Control(func(s uintptr) {
		if name, err := unix.GetsockoptString(int(s), unix.IPPROTO_TCP, unix.TCP_CONGESTION); err == nil &&
			strings.HasPrefix(name, pacing) {
			// A route may forbid it ("congctl lock").
			_ = unix.SetsockoptString(int(s), unix.IPPROTO_TCP, unix.TCP_CONGESTION, unpacing)
		}
	})
}

// Dialer opens links to "host:port" addresses. The zero value works. It is safe for concurrent use.
type Dialer struct {
	// LocalAddr, if not empty, is the local IP address to use.
	LocalAddr string
}

var _ transport.Dialer = Dialer{}

// Dial connects. The context bounds the time.
func (d Dialer) Dial(ctx context.Context, addr string) (transport.Link, error) {
	nd := net.Dialer{KeepAlive: -1, Control: unpaced}
	nd.SetMultipathTCP(false)
	if d.LocalAddr != "" {
		ip := net.ParseIP(d.LocalAddr)
		if ip == nil {
			return nil, fmt.Errorf("tcp: local address %q is not an IP address", d.LocalAddr)
		}
		nd.LocalAddr = &net.TCPAddr{IP: ip}
	}
	c, err := nd.DialContext(ctx, "tcp", addr)
	if err != nil {
		return nil, err
	}
	return dialled(c.(*net.TCPConn))
}

// Listener accepts links outside of Go's netpoller, which knows the listening socket only. It is
// safe for concurrent use.
type Listener struct {
	socket *os.File
	raw    syscall.RawConn // raw access to the listening socket
	addr   string
	closed atomic.Bool
}

var _ transport.Listener = (*Listener)(nil)

// Listen accepts links at "host:port". An empty host means all addresses, port 0 any free port.
func Listen(addr string) (*Listener, error) {
	lc := net.ListenConfig{KeepAlive: -1, Control: unpaced}
	lc.SetMultipathTCP(false)
	l, err := lc.Listen(context.Background(), "tcp", addr)
	if err != nil {
		return nil, err
	}
	return From(l.(*net.TCPListener))
}

// From returns a Listener for a socket that listens already, and closes the given one.
func From(l *net.TCPListener) (*Listener, error) {
	defer l.Close()
	if err := prepare(l); err != nil {
		return nil, err
	}
	fd, err := highfd.DupOf(l)
	if err != nil {
		return nil, err
	}
	socket := os.NewFile(uintptr(fd), "listener") // it does not block, because the flag belongs to the description
	raw, err := socket.SyscallConn()
	if err != nil {
		return nil, errors.Join(err, socket.Close())
	}
	return &Listener{socket: socket, raw: raw, addr: l.Addr().String()}, nil
}

// Accept blocks until the next link.
func (l *Listener) Accept() (transport.Link, error) {
	fd := -1
	var from netip.AddrPort
	var failed error
	err := l.raw.Read(func(s uintptr) bool {
		fd, from, failed = accept(int(s))
		return failed != unix.EAGAIN
	})
	switch {
	case err != nil && l.closed.Load():
		return nil, transport.ErrClosed
	case err != nil:
		return nil, err
	case failed != nil:
		return nil, fmt.Errorf("accept %s: %w", l.addr, failed)
	}
	return newLink(highfd.Raise(fd), from), nil
}

// accept accepts the first connection that its other end has not given up. x/sys's function would
// also ask the kernel for the socket's protocol each time.
func accept(fd int) (int, netip.AddrPort, error) {
	var from unix.RawSockaddrAny
	for {
		size := uint32(unix.SizeofSockaddrAny)
		c, _, e := unix.RawSyscall6(unix.SYS_ACCEPT4, uintptr(fd), uintptr(unsafe.Pointer(&from)),
			uintptr(unsafe.Pointer(&size)), unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0, 0)
		switch e {
		case 0:
			return int(c), origin(&from), nil
		case unix.EINTR, unix.ECONNABORTED:
		default:
			return -1, netip.AddrPort{}, e
		}
	}
}

// origin returns the address from which a connection comes, in the kernel's form of it.
func origin(a *unix.RawSockaddrAny) netip.AddrPort {
	switch a.Addr.Family {
	case unix.AF_INET:
		in := (*unix.RawSockaddrInet4)(unsafe.Pointer(a))
		return netip.AddrPortFrom(netip.AddrFrom4(in.Addr), hostOrder(in.Port))
	case unix.AF_INET6:
		in := (*unix.RawSockaddrInet6)(unsafe.Pointer(a))
		return netip.AddrPortFrom(scoped(in.Addr, in.Scope_id), hostOrder(in.Port))
	}
	return netip.AddrPort{}
}

func hostOrder(port uint16) uint16 {
	b := (*[2]byte)(unsafe.Pointer(&port))
	return uint16(b[0])<<8 | uint16(b[1])
}

// Addr returns the listening address as "ip:port".
func (l *Listener) Addr() string { return l.addr }

// Close ends Accept. Accepted links stay open.
func (l *Listener) Close() error {
	l.closed.Store(true)
	return l.socket.Close()
}
