//go:build rdma && cgo

package verbs

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/leidenzipper/zipper/internal/transport"
	"github.com/leidenzipper/zipper/internal/transport/addr"
)

// host has the open devices, by name.
type host struct {
	mu      sync.Mutex
	devices map[string]*device
}

// any returns an error if this host has no RDMA port at all.
func (h *host) any() error {
	ports, err := Survey()
	if err == nil && len(ports) == 0 {
		_, err = choose(addr.Verbs{}, local{}, nil)
	}
	return err
}

// pick opens the device of the chosen place, and returns it with a reference for the caller.
func (h *host) pick(choice func([]PortInfo) (Place, error)) (*device, Place, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	ports, err := Survey()
	if err != nil {
		return nil, Place{}, err
	}
	p, err := choice(ports)
	if err != nil {
		return nil, Place{}, permanent{err}
	}
	d := h.devices[p.Device]
	if d != nil && d.retain() {
		return d, p, nil
	}
	if d != nil { // it failed; its driver may have restarted
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

// Dialer opens links to "HOST:PORT" or "verbs:HOST:PORT" addresses (addr.Verbs). The zero value
// works. It is safe for concurrent use.
type Dialer struct{ Options Options }

var _ transport.Dialer = Dialer{}

// Dial connects. The context bounds the time.
func (d Dialer) Dial(ctx context.Context, to string) (transport.Link, error) {
	a, err := addr.ParseVerbs(to)
	if err != nil {
		return nil, permanent{err}
	}
	dial := dialTCP
	if a.CM {
		dial = dialCM
	}
	c, err := dial(ctx, a)
	if err != nil {
		return nil, err
	}
	l, err := new(host).link(ctx, c, d.Options.at(a))
	if err != nil {
		return nil, fmt.Errorf("verbs %s: %w", a.Host, err)
	}
	return l, nil
}

// link makes a link over a control, of which it takes ownership.
func (h *host) link(ctx context.Context, c control, o Options) (*link, error) {
	d, p, err := h.pick(c.place)
	if err != nil {
		c.refuse(err)
		return nil, errors.Join(err, c.close())
	}
	return establish(ctx, c, d, p, o)
}

// Listener accepts links. It is safe for concurrent use.
type Listener struct {
	from   acceptor
	addr   addr.Verbs
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

// Listen accepts links at "HOST:PORT" or "verbs:HOST:PORT" (addr.Verbs). An empty host means all
// addresses, port 0 any free port. It fails if this host has no RDMA port for the address.
func Listen(at string, o Options) (*Listener, error) {
	a, err := addr.ParseVerbs(at)
	if err != nil {
		return nil, err
	}
	o = o.at(a)
	if o.Slots < minSlots || o.Slots > maxSlots || o.SlotSize < minSlotSize || o.SlotSize > maxSlotSize {
		return nil, fmt.Errorf("verbs: %d slots of %d bytes, want %d to %d of %d to %d", o.Slots, o.SlotSize,
			minSlots, maxSlots, minSlotSize, maxSlotSize)
	}
	if o.Blocks < minBlocks || o.Blocks > maxBlocks || o.BlockSize < minBlock || o.BlockSize > maxBlock {
		return nil, fmt.Errorf("verbs: %d blocks of %d bytes, want %d to %d of %d to %d", o.Blocks, o.BlockSize,
			minBlocks, maxBlocks, minBlock, maxBlock)
	}
	listen := listenTCP
	if a.CM {
		listen = listenCM
	}
	from, err := listen(a)
	if err != nil {
		return nil, err
	}
	l := &Listener{from: from, addr: a, opt: o, ready: make(chan *link), broken: make(chan error, 1)}
	l.host.devices = map[string]*device{}
	if err := from.check(&l.host); err != nil {
		return nil, errors.Join(err, from.close(), l.host.close())
	}
	l.addr.Host = from.address()
	l.ctx, l.cancel = context.WithCancel(context.Background())
	l.wg.Go(l.serve)
	return l, nil
}

// serve runs each connection exchange in a goroutine of its own, so that a slow peer does not hold
// up others.
func (l *Listener) serve() {
	slots := make(chan struct{}, handshakes)
	for {
		slots <- struct{}{}
		c, err := l.from.accept()
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

func (l *Listener) take(c control) {
	k, err := l.host.link(l.ctx, c, l.opt)
	if err != nil {
		var mine interface{ Local() bool }
		if errors.As(err, &mine) { // the peer knows the reason; the operator should, too
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

// Accept blocks until the next link. An error that is not ErrClosed says why a link could not be
// made at this end.
func (l *Listener) Accept() (transport.Link, error) {
	if l.ctx.Err() != nil { // also if links wait
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

// Addr returns the listening address as "verbs:IP:PORT".
func (l *Listener) Addr() string { return l.addr.String() }

// Close ends Accept. Accepted links stay open.
func (l *Listener) Close() error {
	var err error
	l.once.Do(func() {
		l.cancel()
		err = l.from.close()
		l.wg.Wait()
		err = errors.Join(err, l.host.close())
	})
	return err
}
