//go:build rdma && cgo

package verbs

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"

	"github.com/leidenzipper/zipper/transport"
)

// host holds open devices, by name.
type host struct {
	mu      sync.Mutex
	devices map[string]*device
}

// pick opens the device for a connection and returns it with a reference for the caller.
func (h *host) pick(a Address, l local) (*device, Place, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	ports, err := Survey()
	if err != nil {
		return nil, Place{}, err
	}
	p, err := choose(a, l, ports)
	if err != nil {
		return nil, Place{}, permanent{err}
	}
	d := h.devices[p.Device]
	if d != nil && d.retain() {
		return d, p, nil
	}
	if d != nil { // it failed; its driver may have started anew
		delete(h.devices, p.Device)
		if err := d.release(); err != nil {
			return nil, p, err
		}
	}
	if d, err = openDevice(p.Device); err != nil {
		return nil, p, err
	}
	if h.devices != nil {
		h.devices[p.Device] = d
		d.retain()
	}
	return d, p, nil
}

func (h *host) close() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	var errs []error
	for _, d := range h.devices {
		errs = append(errs, d.release())
	}
	h.devices = map[string]*device{}
	return errors.Join(errs...)
}

// Dialer opens links to "HOST:PORT" or "verbs:HOST:PORT" addresses (see Address). The zero value works. Safe for concurrent use.
type Dialer struct{ Options Options }

var _ transport.Dialer = Dialer{}

// Dial connects; the context bounds the time.
func (d Dialer) Dial(ctx context.Context, addr string) (transport.Link, error) {
	a, err := ParseAddress(addr)
	if err != nil {
		return nil, permanent{err}
	}
	var nd net.Dialer
	nd.SetMultipathTCP(false)
	c, err := nd.DialContext(ctx, "tcp", a.TCP)
	if err != nil {
		return nil, err
	}
	conn := c.(*net.TCPConn)
	l, err := dial(ctx, conn, a, d.Options.withDefaults())
	if err != nil {
		conn.Close()
		return nil, fmt.Errorf("verbs %s: %w", a.TCP, err)
	}
	return l, nil
}

func dial(ctx context.Context, conn *net.TCPConn, a Address, o Options) (*link, error) {
	end, err := localEnd(conn.LocalAddr())
	if err != nil {
		return nil, err
	}
	dev, p, err := new(host).pick(a, end)
	if err != nil {
		return nil, err
	}
	return establish(ctx, conn, dev, p, o)
}

// handshakes is how many connection exchanges a listener runs at a time.
const handshakes = 64

// Listener takes links in. Safe for concurrent use.
type Listener struct {
	l      *net.TCPListener
	addr   Address
	opt    Options
	host   host
	ready  chan *link
	broken chan error
	ctx    context.Context
	cancel context.CancelFunc
	once   sync.Once
	wg     sync.WaitGroup
}

var _ transport.Listener = (*Listener)(nil)

// Listen waits for links at "HOST:PORT" or "verbs:HOST:PORT" (see Address); an empty host means all addresses, port 0 any
// free port. It fails if this host has no RDMA port for the address.
func Listen(addr string, o Options) (*Listener, error) {
	a, err := ParseAddress(addr)
	if err != nil {
		return nil, err
	}
	o = o.withDefaults()
	if o.Slots < minSlots || o.Slots > maxSlots || o.SlotSize < minSlotSize || o.SlotSize > maxSlotSize {
		return nil, fmt.Errorf("verbs: %d slots of %d bytes, want %d to %d of %d to %d", o.Slots, o.SlotSize, minSlots, maxSlots, minSlotSize, maxSlotSize)
	}
	if o.Blocks < minBlocks || o.Blocks > maxBlocks || o.BlockSize < minBlock || o.BlockSize > maxBlock {
		return nil, fmt.Errorf("verbs: %d blocks of %d bytes, want %d to %d of %d to %d", o.Blocks, o.BlockSize, minBlocks, maxBlocks, minBlock, maxBlock)
	}
	lc := net.ListenConfig{}
	lc.SetMultipathTCP(false)
	tl, err := lc.Listen(context.Background(), "tcp", a.TCP)
	if err != nil {
		return nil, err
	}
	l := &Listener{l: tl.(*net.TCPListener), addr: a, opt: o, ready: make(chan *link), broken: make(chan error, 1)}
	l.host.devices = map[string]*device{}
	if err := l.check(); err != nil {
		return nil, errors.Join(err, tl.Close(), l.host.close())
	}
	l.addr.TCP = tl.Addr().String()
	l.ctx, l.cancel = context.WithCancel(context.Background())
	l.wg.Go(l.serve)
	return l, nil
}

// check sees early whether links can be made at all.
func (l *Listener) check() error {
	if ip := l.l.Addr().(*net.TCPAddr).IP; !ip.IsUnspecified() || l.addr.Device != "" {
		end, err := localEnd(l.l.Addr())
		if err != nil {
			return err
		}
		d, _, err := l.host.pick(l.addr, end)
		if err != nil {
			return err
		}
		return d.release()
	}
	ports, err := Survey()
	if err == nil && len(ports) == 0 {
		_, err = choose(l.addr, local{}, nil)
	}
	return err
}

// serve runs the connection exchanges, each in a goroutine of its own, so that a slow peer holds up nobody.
func (l *Listener) serve() {
	slots := make(chan struct{}, handshakes)
	for {
		slots <- struct{}{}
		c, err := l.l.AcceptTCP()
		if err != nil {
			<-slots
			select {
			case l.broken <- err:
			case <-l.ctx.Done():
				return
			}
			continue
		}
		l.wg.Go(func() {
			defer func() { <-slots }()
			l.take(c)
		})
	}
}

func (l *Listener) take(c *net.TCPConn) {
	k, err := l.establish(c)
	if err != nil {
		c.Close()
		var mine interface{ Local() bool }
		if errors.As(err, &mine) { // the peer knows; the operator should, too
			select {
			case l.broken <- err:
			default:
			}
		}
		return
	}
	select {
	case l.ready <- k:
	case <-l.ctx.Done():
		k.Close()
	}
}

func (l *Listener) establish(c *net.TCPConn) (*link, error) {
	end, err := localEnd(c.LocalAddr())
	if err != nil {
		return nil, err
	}
	d, p, err := l.host.pick(l.addr, end)
	if err != nil {
		refuse(c, err)
		return nil, err
	}
	return establish(l.ctx, c, d, p, l.opt)
}

// Accept blocks for the next link. An error that is not ErrClosed says why a link could not be made at this end.
func (l *Listener) Accept() (transport.Link, error) {
	if l.ctx.Err() != nil { // even if links wait
		return nil, transport.ErrClosed
	}
	select {
	case k := <-l.ready:
		return k, nil
	case err := <-l.broken:
		return nil, err
	case <-l.ctx.Done():
		return nil, transport.ErrClosed
	}
}

// Addr returns "verbs:IP:PORT" as listened on.
func (l *Listener) Addr() string { return l.addr.String() }

// Close ends Accept; links that were accepted stay.
func (l *Listener) Close() error {
	var err error
	l.once.Do(func() {
		l.cancel()
		err = l.l.Close()
		l.wg.Wait()
		err = errors.Join(err, l.host.close())
	})
	return err
}
