//go:build rdma && cgo

package verbs

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"syscall"
	"time"

	"github.com/leidenzipper/zipper/cgo/verbs"
	"github.com/leidenzipper/zipper/internal/transport/addr"
)

// tcpControl is a TCP connection, with the exchange of hello.go.
type tcpControl struct {
	*net.TCPConn
	addr addr.Verbs
}

func dialTCP(ctx context.Context, a addr.Verbs) (control, error) {
	var d net.Dialer
	d.SetMultipathTCP(false)
	c, err := d.DialContext(ctx, "tcp", a.Host)
	if err != nil {
		return nil, err
	}
	return tcpControl{c.(*net.TCPConn), a}, nil
}

func (c tcpControl) place(ports []PortInfo) (Place, error) {
	return tcpPlace(c.addr, c.LocalAddr(), ports)
}

func tcpPlace(a addr.Verbs, from net.Addr, ports []PortInfo) (Place, error) {
	end, err := localEnd(from)
	if err != nil {
		return Place{}, err
	}
	return choose(a, end, ports)
}

func (c tcpControl) greet(l *link, me *hello) (hello, error) {
	if err := send(c, kindHello, me.bytes()); err != nil {
		return hello{}, err
	}
	b, err := receive(c, kindHello)
	if err != nil {
		return hello{}, err
	}
	return parseHello(b)
}

func (c tcpControl) join(l *link, me, peer *hello, o Options) error {
	if peer.layer != me.layer {
		return permanent{errors.New("one port is InfiniBand, the other Ethernet (RoCE): they cannot be on one fabric")}
	}
	path := verbs.Path{Port: l.place.Port, GIDIndex: l.place.GID.Index, DGID: peer.gid, DLID: peer.lid,
		SL: l.place.SL, MTU: verbs.MTU(min(me.mtu, peer.mtu)),
		// On InfiniBand a global route is for another subnet.
		Global: !l.place.InfiniBand || [8]byte(peer.gid[:]) != [8]byte(me.gid[:]), Timeout: o.Timeout,
		Retries: o.Retries}
	for _, half := range []struct {
		qp         *verbs.QP
		mine, them endpoint
		remote     verbs.Access
	}{{l.in.qp, me.in, peer.out, readerAccess}, {l.out.qp, me.out, peer.in, 0}} {
		path.QPN, path.SendPSN, path.RecvPSN = half.them.qpn, half.mine.psn, half.them.psn
		if err := half.qp.Init(l.place.Port, l.place.PKey, half.remote); err != nil {
			return err
		}
		if err := half.qp.Connect(path); err != nil {
			return err
		}
	}
	return nil
}

func (c tcpControl) ready() error  { return c.both(kindReady) }
func (c tcpControl) proven() error { return c.both(kindProven) }

// both sends a message without a body and waits for that of the peer.
func (c tcpControl) both(kind byte) error {
	if err := send(c, kind, nil); err != nil {
		return err
	}
	_, err := receive(c, kind)
	return err
}

func (c tcpControl) refuse(reason error) {
	c.SetDeadline(time.Now().Add(refuseLimit))
	refuse(c, reason)
}

func (c tcpControl) end() error {
	var b [1]byte
	switch n, err := c.Read(b[:]); {
	case n > 0:
		return errors.New("the peer violates the protocol: bytes on the TCP connection")
	case errors.Is(err, io.EOF) || errors.Is(err, syscall.ECONNRESET):
		return io.EOF
	default:
		return fmt.Errorf("peer lost: %w", err)
	}
}

func (c tcpControl) close() error   { return c.Close() }
func (c tcpControl) interrupt()     { c.SetDeadline(time.Unix(1, 0)) }
func (c tcpControl) remote() string { return c.RemoteAddr().String() }

// tcpAcceptor listens on TCP.
type tcpAcceptor struct {
	*net.TCPListener
	addr addr.Verbs
}

func listenTCP(a addr.Verbs) (acceptor, error) {
	lc := net.ListenConfig{}
	lc.SetMultipathTCP(false)
	l, err := lc.Listen(context.Background(), "tcp", a.Host)
	if err != nil {
		return nil, err
	}
	return tcpAcceptor{l.(*net.TCPListener), a}, nil
}

func (l tcpAcceptor) accept() (control, error) {
	c, err := l.AcceptTCP()
	if err != nil {
		return nil, err
	}
	return tcpControl{c, l.addr}, nil
}

func (l tcpAcceptor) check(h *host) error {
	ip := l.Addr().(*net.TCPAddr).IP
	if ip.IsUnspecified() && l.addr.Device == "" {
		return h.any()
	}
	d, _, err := h.pick(func(ports []PortInfo) (Place, error) { return tcpPlace(l.addr, l.Addr(), ports) })
	if err != nil {
		return err
	}
	return d.release()
}

func (l tcpAcceptor) address() string { return l.Addr().String() }
func (l tcpAcceptor) close() error    { return l.Close() }
