//go:build rdma && cgo

package verbs

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"strconv"
	"strings"
	"sync"

	"github.com/leidenzipper/zipper/cgo/verbs"
	"github.com/leidenzipper/zipper/internal/transport/addr"
)

// Survey returns the RDMA ports of this host.
func Survey() ([]PortInfo, error) {
	names, err := verbs.Devices()
	if err != nil {
		return nil, err
	}
	var ports []PortInfo
	for _, name := range names {
		x, err := verbs.Open(name)
		if err != nil {
			return nil, err
		}
		p, err := portsOf(x)
		if err = errors.Join(err, x.Close()); err != nil {
			return nil, err
		}
		ports = append(ports, p...)
	}
	return ports, nil
}

func portsOf(x *verbs.Context) ([]PortInfo, error) {
	a, err := x.Query()
	if err != nil {
		return nil, err
	}
	var ports []PortInfo
	for n := 1; n <= a.Ports; n++ {
		q, err := x.QueryPort(n)
		if err != nil {
			return nil, err
		}
		p := PortInfo{Device: x.Name(), Port: n, Active: q.Active, State: q.State,
			InfiniBand: q.LinkLayer == verbs.InfiniBand, Soft: a.Soft, LID: q.LID, MTU: uint8(q.ActiveMTU)}
		gids, err := x.GIDs(n)
		if err != nil {
			return nil, err
		}
		for _, g := range gids {
			p.GIDs = append(p.GIDs, GIDInfo{g.Index, g.GID, g.Type == verbs.GIDRoCEv2})
		}
		for i := range q.PKeys {
			k, err := x.PKey(n, i)
			if err != nil {
				return nil, err
			}
			p.PKeys = append(p.PKeys, k)
		}
		ports = append(ports, p)
	}
	return ports, nil
}

// Locate returns the place that a link uses whose TCP connection has this local address.
func Locate(a addr.Verbs, from net.Addr) (Place, error) {
	end, err := localEnd(from)
	if err != nil {
		return Place{}, err
	}
	ports, err := Survey()
	if err != nil {
		return Place{}, err
	}
	return choose(a, end, ports)
}

// localEnd describes the interface with this address.
func localEnd(a net.Addr) (local, error) {
	ap, err := netip.ParseAddrPort(a.String())
	if err != nil {
		return local{}, err
	}
	l := local{ip: ap.Addr().Unmap().WithZone("")}
	ifs, err := net.Interfaces()
	if err != nil {
		return l, err
	}
	for _, i := range ifs {
		addrs, err := i.Addrs()
		if err != nil {
			return l, err
		}
		for _, a := range addrs {
			n, ok := a.(*net.IPNet)
			if !ok {
				continue
			}
			if ip, ok := netip.AddrFromSlice(n.IP); !ok || ip.Unmap() != l.ip || len(i.HardwareAddr) != 20 {
				continue
			}
			// An IPoIB hardware address has a queue pair number, 4 bytes, and the port's GID.
			l.port = [16]byte(i.HardwareAddr[4:])
			if b, err := os.ReadFile("/sys/class/net/" + i.Name + "/pkey"); err == nil {
				k, _ := strconv.ParseUint(strings.TrimSpace(string(b)), 0, 16) // 0, unknown, if it is something else
				l.pkey = uint16(k)
			}
		}
	}
	return l, nil
}

// device is an open device with its links. It closes when its last reference is released.
type device struct {
	ctx    *verbs.Context
	pd     *verbs.PD
	events *waiter

	mu    sync.Mutex
	refs  int
	links map[*link]struct{}
	gone  error // error of a device that has failed
	done  chan struct{}
}

// openDevice opens a device with one reference.
func openDevice(name string) (*device, error) {
	x, err := verbs.Open(name)
	if err != nil {
		return nil, err
	}
	pd, err := x.NewPD()
	if err != nil {
		return nil, errors.Join(err, x.Close())
	}
	w, err := newWaiter(x.AsyncFD(), "events of "+name)
	if err != nil {
		return nil, errors.Join(err, pd.Close(), x.Close())
	}
	d := &device{ctx: x, pd: pd, events: w, refs: 1, links: map[*link]struct{}{}, done: make(chan struct{})}
	go d.watch()
	return d, nil
}

// retain adds a reference. It returns false if the device has failed.
func (d *device) retain() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.gone != nil {
		return false
	}
	d.refs++
	return true
}

// lost returns the error for which retain failed.
func (d *device) lost() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.gone
}

// release removes a reference.
func (d *device) release() error {
	d.mu.Lock()
	d.refs--
	last := d.refs == 0
	d.mu.Unlock()
	if !last {
		return nil
	}
	d.events.stop()
	<-d.done
	return errors.Join(d.events.close(), d.pd.Close(), d.ctx.Close())
}

func (d *device) add(l *link) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.links[l] = struct{}{}
	return d.gone
}

func (d *device) remove(l *link) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.links, l)
}

// watch fails the links that an event concerns.
func (d *device) watch() {
	defer close(d.done)
	for {
		var e verbs.AsyncEvent
		err := d.events.wait(func() (got bool, err error) {
			e, got, err = d.ctx.Async()
			return got, err
		})
		if errors.Is(err, os.ErrDeadlineExceeded) { // stopped
			return
		}
		if err != nil {
			d.fail(err, func(*link) bool { return true })
			d.events.sleep()
			return
		}
		what := fmt.Errorf("device %s: %v", d.ctx.Name(), e.Type)
		switch e.Type {
		case verbs.PortError:
			d.fail(fmt.Errorf("device %s: port %d went down", d.ctx.Name(), e.Port),
				func(l *link) bool { return l.place.Port == e.Port })
		case verbs.DeviceFatal:
			d.mu.Lock()
			d.gone = what
			d.mu.Unlock()
			d.fail(what, func(*link) bool { return true })
		case verbs.QPFatal, verbs.QPRequest, verbs.QPAccess:
			d.fail(what, func(l *link) bool { return l.out.qp.Num() == e.QPN || l.in.qp.Num() == e.QPN })
		}
	}
}

func (d *device) fail(err error, which func(*link) bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for l := range d.links {
		if which(l) {
			l.fail(fmt.Errorf("%s: %w", l.remote, err))
		}
	}
}
