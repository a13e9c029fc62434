// Package tcp is the transport over TCP sockets: raw, non-blocking, without delay, outside of Go's
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
)

type link struct {
	fd     int
	ref    fdref.Ref
	remote string
	there  netip.Addr
	watch  watch // the writer's
}

var (
	_ transport.Listening = (*link)(nil)
	_ transport.Piper     = (*link)(nil)
	_ transport.Packeted  = (*link)(nil)
	_ transport.Homed     = (*link)(nil)
	_ transport.Distant   = (*link)(nil)
)

func (l *link) TryRead(p []byte) (int, error) {
	if !l.ref.Acquire() {
		return 0, transport.ErrClosed
	}
	// Raw: the socket does not block, so the scheduler need not know.
	n, _, e := unix.RawSyscall6(unix.SYS_RECVFROM, uintptr(l.fd), uintptr(unsafe.Pointer(unsafe.SliceData(p))),
		uintptr(len(p)), unix.MSG_DONTWAIT, 0, 0)
	l.ref.Release()
	if n == 0 && len(p) == 0 {
		return 0, nil
	}
	return l.read(int(n), e)
}

// read makes TryRead's results of the kernel's.
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

func (l *link) TryFill(p *transport.Pipe, n int) (int, error) {
	if !l.ref.Acquire() {
		return 0, transport.ErrClosed
	}
	k, e := p.Fill(l.fd, n)
	l.ref.Release()
	return l.read(k, e)
}

func (l *link) TryDrain(p *transport.Pipe) (int, error) {
	if !l.ref.Acquire() {
		return 0, transport.ErrClosed
	}
	n, e := p.Drain(l.fd)
	l.ref.Release()
	return l.written(n, e)
}

func (l *link) TryWrite(bufs ...[]byte) (int, error) {
	if len(bufs) == 1 && len(bufs[0]) > 0 { // most messages: a list of one takes the kernel, and us, longer
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

// written makes TryWrite's results of the kernel's.
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

// Unheard is from TCP's own acknowledgements, which the peer's kernel sends while the process is
// stopped. A closed window is not a segment that waits: probes of it are answered.
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

// Packet is known from when the link is connected.
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

// Path is from TCP's own measurements.
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
	p.Congestion, _ = unix.GetsockoptString(l.fd, unix.IPPROTO_TCP, unix.TCP_CONGESTION) // empty: unknown
	return p, true
}

// Far takes BBR where it is allowed: it fills a long path though packets are lost.
func (l *link) Far() {
	if l.ref.Acquire() {
		_ = unix.SetsockoptString(l.fd, unix.IPPROTO_TCP, unix.TCP_CONGESTION, pacing) // the system's own does, too
		l.ref.Release()
	}
}

func (l *link) fail(op string, e syscall.Errno) error {
	return fmt.Errorf("%s %s: %w", op, l.remote, e)
}

// Home is without the zone of a link-local address; of a closed link this end's is not known.
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

// dialled takes a connection away from Go's netpoller.
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

// newLink takes over a connected socket, which does not block and is out of the program's way.
func newLink(fd int, remote netip.AddrPort) *link {
	remote = netip.AddrPortFrom(remote.Addr().Unmap(), remote.Port())
	l := &link{fd: fd, remote: "tcp " + remote.String(), there: remote.Addr().WithZone(""),
		watch: watch{since: time.Now()}}
	l.ref.Free = func() { unix.Close(fd) }
	return l
}

// prepare sets a socket's options; connections that a listening one takes have them from it.
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

// place is an address as x/sys has it.
func place(s unix.Sockaddr) (addr netip.Addr) {
	switch a := s.(type) {
	case *unix.SockaddrInet4:
		return netip.AddrFrom4(a.Addr)
	case *unix.SockaddrInet6:
		return scoped(a.Addr, a.ZoneId)
	}
	return addr
}

// scoped is an IPv6 address with the interface that it is of, if it is link-local, or the IPv4
// address in it.
func scoped(a [16]byte, index uint32) netip.Addr {
	addr := netip.AddrFrom16(a).Unmap()
	if index != 0 && addr.Is6() {
		addr = addr.WithZone(zone(int(index)))
	}
	return addr
}

// zone is the name of a network interface, for people.
func zone(index int) string {
	if i, err := net.InterfaceByIndex(index); err == nil {
		return i.Name
	}
	return strconv.Itoa(index)
}

// unpaced is for sockets that are neither connected nor listening yet: one that BBR has begun to
// pace goes on pacing under another control.
func unpaced(_, _ string, c syscall.RawConn) error {
	return c.Control(func(s uintptr) {
		if name, err := unix.GetsockoptString(int(s), unix.IPPROTO_TCP, unix.TCP_CONGESTION); err == nil &&
			strings.HasPrefix(name, pacing) {
			// a route may forbid it ("congctl lock")
			_ = unix.SetsockoptString(int(s), unix.IPPROTO_TCP, unix.TCP_CONGESTION, unpacing)
		}
	})
}

// Dialer opens links to "host:port" addresses. The zero value works. Safe for concurrent use.
type Dialer struct {
	// LocalAddr, if not empty, is the local IP address to use.
	LocalAddr string
}

var _ transport.Dialer = Dialer{}

// Dial connects; the context bounds the time.
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

// Listener takes links in, past Go's netpoller, which knows the listening socket only. Safe for
// concurrent use.
type Listener struct {
	socket *os.File
	raw    syscall.RawConn // of it
	addr   string
	closed atomic.Bool
}

var _ transport.Listener = (*Listener)(nil)

// Listen waits for links at "host:port"; an empty host means all addresses, port 0 any free port.
func Listen(addr string) (*Listener, error) {
	lc := net.ListenConfig{KeepAlive: -1, Control: unpaced}
	lc.SetMultipathTCP(false)
	l, err := lc.Listen(context.Background(), "tcp", addr)
	if err != nil {
		return nil, err
	}
	return From(l.(*net.TCPListener))
}

// From is a Listener for a socket that listens already, and is closed in its place.
func From(l *net.TCPListener) (*Listener, error) {
	defer l.Close()
	if err := prepare(l); err != nil {
		return nil, err
	}
	fd, err := highfd.DupOf(l)
	if err != nil {
		return nil, err
	}
	socket := os.NewFile(uintptr(fd), "listener") // does not block, as the flag is of the description
	raw, err := socket.SyscallConn()
	if err != nil {
		return nil, errors.Join(err, socket.Close())
	}
	return &Listener{socket: socket, raw: raw, addr: l.Addr().String()}, nil
}

// Accept blocks for the next link.
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

// accept takes one connection, whichever comes first that its other end has not given up. x/sys
// would ask the kernel for the socket's protocol as well, for each.
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

// origin is where a connection comes from, as the kernel has it.
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

// Addr returns "ip:port" as listened on.
func (l *Listener) Addr() string { return l.addr }

// Close ends Accept; links that were accepted stay.
func (l *Listener) Close() error {
	l.closed.Store(true)
	return l.socket.Close()
}
