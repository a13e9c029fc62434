//go:build rdma && cgo

package verbs

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"strconv"
	"sync"
	"syscall"
	"time"

	"github.com/leidenzipper/zipper/cgo/verbs"
	"github.com/leidenzipper/zipper/internal/transport/addr"
)

// cmControl is a connection of the communication manager, with the exchange of private.go. The
// connection is for the queue pair that the dialing end writes to; the other queue pair takes the
// same path.
type cmControl struct {
	ch     *verbs.CMChannel
	id     *verbs.CM
	events *waiter
	dialed bool
	peer   string
	asked  []byte // accepting: the request's private data
	answer []byte // accepting: the message that ready sends
	qpn    uint32 // this end's queue pair of the connection

	mu      sync.Mutex
	state   cmState
	parting bool          // this end has disconnected, or has answered the peer's disconnection
	closed  bool          // close was called
	ended   chan struct{} // closed when end has returned; nil if end was not called
}

// cmState is the state of the connection.
//
//	dialing    begun ─the peer answers→ answerable ─ready→ established
//	accepting  begun ─the peer asks→ answerable ─Accept→ begun ─the peer is established→ established
//	both       answerable ─Reject→ begun
//
// Two flags have the end of the connection: parting, closed.
type cmState uint8

const (
	cmBegun       cmState = iota // close frees the connection; the kernel tells the peer if it was asked
	cmAnswerable                 // the peer has asked or answered, so refuse can reject
	cmEstablished                // close disconnects
)

// cmLegal[from] is the set of states that may follow.
var cmLegal = [...]uint8{
	cmBegun:       1<<cmAnswerable | 1<<cmEstablished,
	cmAnswerable:  1<<cmBegun | 1<<cmEstablished,
	cmEstablished: 0,
}

// newCM creates a cmControl with a channel of its own: for id, which came from a listener's
// channel, or otherwise for a new one.
func newCM(id *verbs.CM) (c *cmControl, err error) {
	c = &cmControl{id: id}
	defer func() {
		if err != nil {
			err = errors.Join(err, c.close())
		}
	}()
	if c.ch, err = verbs.NewCMChannel(); err != nil {
		return c, err
	}
	if c.events, err = newWaiter(c.ch.FD(), "events of a connection"); err != nil {
		return c, err
	}
	if id != nil {
		return c, id.Migrate(c.ch)
	}
	c.id, err = c.ch.NewCM()
	return c, err
}

// dialCM resolves the address and the route to it. greet requests the connection.
func dialCM(ctx context.Context, a addr.Verbs) (control, error) {
	ends, err := lookup(ctx, a.Host)
	if err != nil {
		return nil, err
	}
	for _, end := range ends {
		var c *cmControl
		if c, err = resolve(ctx, end); err == nil {
			return c, nil
		}
	}
	return nil, err // error of the last attempt
}

// lookup returns the IP addresses of HOST:PORT.
func lookup(ctx context.Context, s string) ([]netip.AddrPort, error) {
	host, p, err := net.SplitHostPort(s)
	if err != nil {
		return nil, err
	}
	port, err := strconv.ParseUint(p, 10, 16)
	if err != nil {
		return nil, err
	}
	ips, err := net.DefaultResolver.LookupNetIP(ctx, "ip", host)
	var ends []netip.AddrPort
	for _, ip := range ips {
		ends = append(ends, netip.AddrPortFrom(ip.Unmap(), uint16(port)))
	}
	return ends, err
}

func resolve(ctx context.Context, to netip.AddrPort) (*cmControl, error) {
	c, err := newCM(nil)
	if err != nil {
		return nil, permanent{err}
	}
	c.dialed, c.peer = true, to.String()
	stop := context.AfterFunc(ctx, c.interrupt)
	defer stop()
	for _, step := range []struct {
		begin func() error
		done  verbs.CMEventType
	}{
		{func() error { return c.id.ResolveAddr(to, resolveLimit) }, verbs.AddrResolved},
		{func() error { return c.id.ResolveRoute(resolveLimit) }, verbs.RouteResolved},
	} {
		if err = step.begin(); err == nil {
			_, err = c.await(step.done)
		}
		if errors.Is(err, syscall.ENODEV) {
			err = permanent{fmt.Errorf("IP routing does not lead to %s by an RDMA port of this host: use an address of the fabric's own IP network: %w", to, err)}
		}
		if err == nil || ctx.Err() != nil {
			err = ctx.Err()
		}
		if err != nil {
			return nil, errors.Join(err, c.close())
		}
	}
	return c, nil
}

// await returns the next event if it has the wanted type. Most others are errors.
func (c *cmControl) await(want verbs.CMEventType) (e verbs.CMEvent, err error) {
	for {
		err := c.events.wait(func() (got bool, err error) {
			e, got, err = c.ch.Event()
			return got, err
		})
		switch {
		case err != nil:
			return e, err
		case e.Type == want:
			return e, nil
		}
		switch e.Type {
		case verbs.Rejected:
			return e, rejection(e)
		case verbs.Disconnected:
			c.part()
			return e, io.EOF
		case verbs.AddrError, verbs.RouteError, verbs.Unreachable, verbs.ConnectError, verbs.DeviceRemoval:
			err := fmt.Errorf("connection manager: %v", e.Type)
			if e.Status < 0 {
				err = fmt.Errorf("%w: %w", err, syscall.Errno(-e.Status))
			}
			return e, err
		}
	}
}

// rejection returns the reason for which the peer, or its kernel, has rejected the connection.
func rejection(e verbs.CMEvent) error {
	switch e.Status {
	case verbs.RejectByProgram:
		return parseReason(e.Data)
	case verbs.RejectNoListener:
		return fmt.Errorf("%w (no program listens there for the connection manager; is it --listen 'verbs:…?connect=cm' at the forwarder, and the port right?)", syscall.ECONNREFUSED)
	}
	return fmt.Errorf("the connection manager there rejects the connection, reason %d", e.Status)
}

func (c *cmControl) place(ports []PortInfo) (Place, error) {
	name, n := c.id.Device(), c.id.Port()
	for _, p := range ports {
		if p.Device != name || p.Port != n {
			continue
		}
		if !p.Active {
			return Place{}, notActive(p.String())
		}
		return Place{PortInfo: p}, nil // the communication manager sets the rest
	}
	return Place{}, fmt.Errorf("this host has no RDMA port %s:%d any more", name, n)
}

func (c *cmControl) greet(l *link, me *hello) (peer hello, err error) {
	if !c.dialed {
		c.qpn, c.answer = l.in.qp.Num(), me.private(me.out)
		peer, peer.in, err = parsePrivate(c.asked)
		return peer, err
	}
	c.qpn = l.out.qp.Num()
	if err = c.id.Connect(c.qpn, me.private(me.in)); err != nil {
		return peer, err
	}
	e, err := c.await(verbs.ConnectResponse)
	if err != nil {
		return peer, err
	}
	c.become(cmAnswerable)
	peer, peer.out, err = parsePrivate(e.Data)
	return peer, err
}

func (c *cmControl) join(l *link, me, peer *hello, o Options) error {
	first, second, peers, mine := l.out.qp, l.in.qp, peer.out, me.in
	if !c.dialed {
		first, second, peers, mine = l.in.qp, l.out.qp, peer.in, me.out
	}
	for _, qp := range []*verbs.QP{first, second} {
		path := verbs.Path{Timeout: o.Timeout, Retries: o.Retries}
		if qp == second {
			path.QPN, path.SendPSN, path.RecvPSN = peers.qpn, mine.psn, peers.psn
		}
		var remote verbs.Access
		if qp == l.in.qp {
			remote = readerAccess
		}
		if err := qp.InitBy(c.id, remote); err != nil {
			return err
		}
		if err := qp.ConnectBy(c.id, path); err != nil {
			return err
		}
	}
	return nil
}

func (c *cmControl) ready() error {
	if c.dialed { // the answer has said that the peer is ready
		if err := c.id.Establish(); err != nil {
			return err
		}
	} else {
		if err := c.id.Accept(c.qpn, c.answer); err != nil {
			return err
		}
		c.become(cmBegun)
		if _, err := c.await(verbs.Established); err != nil {
			return err
		}
	}
	c.become(cmEstablished)
	return nil
}

// proven does nothing. At either end the peer's adapter has acknowledged one number and sent the
// other. A peer that does not get so far closes the connection.
func (c *cmControl) proven() error { return nil }

func (c *cmControl) refuse(reason error) {
	if c.at() == cmAnswerable && c.id.Reject(privateReason(reason)) == nil {
		c.become(cmBegun)
	}
}

func (c *cmControl) end() error {
	c.mu.Lock()
	if c.closed {
		c.mu.Unlock()
		return io.EOF
	}
	ended := make(chan struct{})
	c.ended = ended
	c.mu.Unlock()
	defer close(ended)
	_, err := c.await(verbs.Disconnected)
	if err == nil || err == io.EOF {
		c.part()
		return io.EOF
	}
	return fmt.Errorf("peer lost: %w", err)
}

// part disconnects, once. A peer that has disconnected first waits for this end to do so, too.
func (c *cmControl) part() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.parting {
		c.parting = true
		_ = c.id.Disconnect() // an error means that the connection has ended
	}
}

// close waits a little for the peer's answer, because a lost message of the communication manager
// is sent again only as long as its sender exists.
func (c *cmControl) close() error {
	c.mu.Lock()
	c.closed = true
	ended := c.ended
	c.mu.Unlock()
	if c.at() == cmEstablished {
		c.part()
		c.events.until(time.Now().Add(partingLimit))
		if ended == nil {
			_, _ = c.await(verbs.Disconnected) // everything is freed after any result
		} else {
			<-ended
		}
	}
	return freeCM(c.id, c.events, c.ch)
}

// freeCM frees the given objects, in the order of their dependencies.
func freeCM(id *verbs.CM, events *waiter, ch *verbs.CMChannel) error {
	var errs []error
	if id != nil {
		errs = append(errs, id.Close())
	}
	if events != nil {
		errs = append(errs, events.close())
	}
	if ch != nil {
		ch.Close()
	}
	return errors.Join(errs...)
}

func (c *cmControl) interrupt()     { c.events.stop() }
func (c *cmControl) remote() string { return c.peer }

// become changes the state of the connection to s. It panics if the change is not allowed.
func (c *cmControl) become(s cmState) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if cmLegal[c.state]&(1<<s) == 0 {
		panic(fmt.Sprintf("verbs: connection goes from state %d to %d", c.state, s))
	}
	c.state = s
}

func (c *cmControl) at() cmState {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.state
}

// cmAcceptor listens for the communication manager's connections.
type cmAcceptor struct {
	ch     *verbs.CMChannel
	id     *verbs.CM
	events *waiter
	any    bool // whether it listens at all addresses

	mu sync.Mutex // accept holds it; close frees only when accept does not run
}

func listenCM(a addr.Verbs) (_ acceptor, err error) {
	end, err := bindable(a.Host)
	if err != nil {
		return nil, err
	}
	l := &cmAcceptor{any: end.Addr().IsUnspecified()}
	defer func() {
		if err != nil {
			err = errors.Join(err, l.close())
		}
	}()
	if l.ch, err = verbs.NewCMChannel(); err != nil {
		return nil, err
	}
	if l.events, err = newWaiter(l.ch.FD(), "events of a listener"); err != nil {
		return nil, err
	}
	if l.id, err = l.ch.NewCM(); err != nil {
		return nil, err
	}
	if err = l.id.Bind(end); errors.Is(err, syscall.ENODEV) {
		err = fmt.Errorf("%s is not the address of an RDMA port of this host: %w", end.Addr(), err)
	}
	if err != nil {
		return nil, err
	}
	return l, l.id.Listen(handshakes)
}

// bindable returns the address at which to listen for HOST:PORT.
func bindable(s string) (netip.AddrPort, error) {
	host, port, err := net.SplitHostPort(s)
	if err != nil {
		return netip.AddrPort{}, err
	}
	if host == "" {
		host = "0.0.0.0"
	}
	ends, err := lookup(context.Background(), net.JoinHostPort(host, port))
	if err != nil {
		return netip.AddrPort{}, err
	}
	return ends[0], nil
}

func (l *cmAcceptor) accept() (control, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	var e verbs.CMEvent
	for e.New == nil {
		err := l.events.wait(func() (got bool, err error) {
			e, got, err = l.ch.Event()
			return got, err
		})
		if err != nil {
			return nil, err
		}
		if e.Type == verbs.DeviceRemoval {
			return nil, fmt.Errorf("connection manager: %v", e.Type)
		}
	}
	c, err := newCM(e.New)
	if err != nil {
		return nil, err
	}
	c.peer, c.asked = e.New.Peer().String(), e.Data
	c.become(cmAnswerable)
	return c, nil
}

func (l *cmAcceptor) check(h *host) error {
	if l.any {
		return h.any()
	}
	return nil // an address of another device could not be bound
}

func (l *cmAcceptor) address() string { return l.id.Local().String() }

func (l *cmAcceptor) close() error {
	if l.events != nil {
		l.events.stop()
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return freeCM(l.id, l.events, l.ch)
}
