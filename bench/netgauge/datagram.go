package netgauge

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// datagramHeader is the size of the number that begins each datagram: by it the pattern's exchange
// distinguishes a late answer from the right one.
const datagramHeader = 8

// packets is an endpoint for two processes over a service that sends single packets.
type packets struct {
	rank  int
	write func(b []byte) error
	// read reads one packet's payload; it returns os.ErrDeadlineExceeded or EAGAIN if none came.
	read  func(b []byte) (int, error)
	close func() error
	in    []byte
	// limit is the largest size of a message in bytes on this path; 0 means the module's
	// MaxMessage.
	limit int
}

func (d *packets) Rank() int                  { return d.rank }
func (d *packets) Size() int                  { return 2 }
func (d *packets) MaxMessage() int            { return d.limit }
func (d *packets) Send(_ int, b []byte) error { return d.write(b) }
func (d *packets) Close() error               { return d.close() }
func (d *packets) Recv(_ int, b []byte) error {
	for {
		n, err := d.read(d.in)
		switch {
		case errors.Is(err, os.ErrDeadlineExceeded), errors.Is(err, unix.EAGAIN), absent(err):
			return ErrLost
		case err != nil:
			return err
		case n >= len(b): // raw Ethernet pads short frames
			copy(b, d.in)
			return nil
		}
	}
}

// hello waits until both processes are there: each sends until a message of the other has arrived,
// and once more.
func (d *packets) hello(ctx context.Context) error {
	b, in := make([]byte, 64), make([]byte, 64)
	binary.LittleEndian.PutUint64(b, helloNumber)
	for ctx.Err() == nil {
		if err := d.write(b); err != nil && !absent(err) {
			return err
		}
		if err := d.Recv(0, in); err == nil && binary.LittleEndian.Uint64(in) == helloNumber {
			return d.write(b)
		} else if err != nil && !errors.Is(err, ErrLost) {
			return err
		}
	}
	return fmt.Errorf("the other process did not connect: %w", ctx.Err())
}

const helloNumber = 1<<64 - 1

func udpModule() Module {
	return Module{Name: "udp", About: "UDP datagrams, two processes; addresses host:port", MinMessage: datagramHeader,
		MaxMessage: 65507,
		Open: func(ctx context.Context, p Place) (Endpoint, error) {
			local, err := net.ResolveUDPAddr("udp", p.Addrs[p.Rank])
			if err != nil {
				return nil, err
			}
			remote, err := net.ResolveUDPAddr("udp", p.Addrs[1-p.Rank])
			if err != nil {
				return nil, err
			}
			c, err := net.DialUDP("udp", local, remote)
			if err != nil {
				return nil, err
			}
			return greet(ctx, &packets{rank: p.Rank, close: c.Close, in: make([]byte, 65536),
				write: func(b []byte) error { _, err := c.Write(b); return err },
				read: func(b []byte) (int, error) {
					c.SetReadDeadline(time.Now().Add(lossTimeout))
					return c.Read(b)
				}})
		}}
}

func greet(ctx context.Context, d *packets) (Endpoint, error) {
	if err := d.hello(ctx); err != nil {
		_ = d.close() // the first error is the cause
		return nil, err
	}
	return d, nil
}

func needRaw() error {
	if os.Geteuid() != 0 {
		return errors.New("raw sockets need root (or CAP_NET_RAW)")
	}
	return nil
}

// protoExperimental is IANA's protocol number for experimentation and testing (RFC 3692).
const protoExperimental = 253

func ipModule() Module {
	return Module{Name: "ip", About: "raw IP packets (protocol 253), two processes, root; addresses are IPv4 addresses",
		MinMessage: datagramHeader, MaxMessage: 1480,
		Unusable: needRaw,
		Open: func(ctx context.Context, p Place) (Endpoint, error) {
			local, err := net.ResolveIPAddr("ip4", p.Addrs[p.Rank])
			if err != nil {
				return nil, err
			}
			remote, err := net.ResolveIPAddr("ip4", p.Addrs[1-p.Rank])
			if err != nil {
				return nil, err
			}
			c, err := net.DialIP(fmt.Sprintf("ip4:%d", protoExperimental), local, remote)
			if err != nil {
				return nil, err
			}
			return greet(ctx, &packets{rank: p.Rank, close: c.Close, in: make([]byte, 65536),
				write: func(b []byte) error { _, err := c.Write(b); return err },
				read: func(b []byte) (int, error) {
					c.SetReadDeadline(time.Now().Add(lossTimeout))
					n, _, err := c.ReadFromIP(b) // without the IP header
					return n, err
				}})
		}}
}

// etherExperimental is the IEEE's local experimental EtherType 1.
const etherExperimental = 0x88b5

func ethModule() Module {
	return Module{Name: "eth",
		About:      "raw Ethernet frames (EtherType 0x88B5), two processes, root; addresses INTERFACE/MAC: the own interface, and each one's MAC",
		MinMessage: 46, MaxMessage: 1500, Unusable: needRaw,
		Open: func(ctx context.Context, p Place) (Endpoint, error) {
			var name string
			macs := make([]net.HardwareAddr, 2)
			for i, a := range p.Addrs {
				at := len(a)
				for j := range a {
					if a[j] == '/' {
						at = j
					}
				}
				if at == len(a) {
					return nil, fmt.Errorf("address %q: want INTERFACE/MAC", a)
				}
				mac, err := net.ParseMAC(a[at+1:])
				if err != nil {
					return nil, err
				}
				macs[i] = mac
				if i == p.Rank {
					name = a[:at]
				}
			}
			ifc, err := net.InterfaceByName(name)
			if err != nil {
				return nil, fmt.Errorf("interface %s: %w", name, err)
			}
			proto := uint16(etherExperimental>>8 | etherExperimental&0xff<<8)
			fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, int(proto))
			if err != nil {
				return nil, err
			}
			to := &unix.SockaddrLinklayer{Protocol: proto, Ifindex: ifc.Index, Halen: 6}
			copy(to.Addr[:], macs[1-p.Rank])
			tv := unix.NsecToTimeval(int64(lossTimeout))
			if err := first(unix.Bind(fd, &unix.SockaddrLinklayer{Protocol: proto, Ifindex: ifc.Index}),
				unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &tv)); err != nil {
				unix.Close(fd)
				return nil, err
			}
			return greet(ctx, &packets{rank: p.Rank, close: func() error { return unix.Close(fd) },
				in:    make([]byte, 2048),
				write: func(b []byte) error { return unix.Sendto(fd, b, 0, to) },
				read: func(b []byte) (int, error) {
					for {
						n, from, err := unix.Recvfrom(fd, b, 0)
						if err == unix.EINTR {
							continue
						}
						if l, ok := from.(*unix.SockaddrLinklayer); ok && l.Pkttype == unix.PACKET_OUTGOING {
							continue
						}
						return n, err
					}
				}})
		}}
}

func first(errs ...error) error {
	for _, e := range errs {
		if e != nil {
			return e
		}
	}
	return nil
}

// absent tells whether the kernel's error means that the other process has not opened its socket
// yet.
func absent(err error) bool {
	return errors.Is(err, unix.ECONNREFUSED) || errors.Is(err, unix.ENOPROTOOPT)
}
