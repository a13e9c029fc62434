// Package nat lets this host's kernel forward TCP connections between its networks: a client on a
// certain host that connects to a port of this host is connected to an address on another network,
// and each end sees only this host (nftables: destination NAT and masquerading). The bytes never
// enter user space. A connection goes on when its way is closed.
//
// All rules are in tables that belong to an open Table ("flags owner"), one for each version of IP:
// the kernel removes them in any case when its process ends. Package nat requires CAP_NET_ADMIN,
// Linux 5.12 and IP forwarding (net.ipv4.ip_forward=1, net.ipv6.conf.all.forwarding=1).
package nat

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"sync"

	"golang.org/x/sys/unix"
)

// Way is a way for connections: those of the host From to a free port of this host, at the address
// At, are forwarded to the address and port To.
type Way struct {
	From, At netip.Addr
	To       netip.AddrPort
}

// Table has the connections that the kernel forwards for one process, in tables of nftables. It is
// safe for concurrent use.
type Table struct {
	mu       sync.Mutex
	families [len(versions)]*family  // nil: this host does not forward packets of that version
	ways     map[netip.AddrPort]*way // the open ways, by the address where they begin
}

// way is an open way.
type way struct {
	Way
	port int // the descriptor of the socket that reserves the port
}

// Open makes a table that forwards no connections yet. The caller must close it. It returns an
// error if this host forwards packets of no version of IP.
func Open() (*Table, error) {
	n := &Table{ways: map[netip.AddrPort]*way{}}
	var failed [len(versions)]error
	for i, v := range versions {
		n.families[i], failed[i] = openFamily(v)
	}
	if n.families == [len(versions)]*family{} {
		return nil, failed[0] // the other reason is most likely the same
	}
	return n, nil
}

// of returns the family of a way's addresses, or an error if this host does not forward its
// packets, which may have changed since Open.
func (n *Table) of(w *Way) (*family, error) {
	i := 0
	if w.At.Is6() {
		i = 1
	}
	if w.From.Is6() != w.At.Is6() || w.To.Addr().Is6() != w.At.Is6() || w.At.Is4In6() || w.At.Zone() != "" || !w.At.IsValid() {
		return nil, fmt.Errorf("from %v at %v to %v: want addresses of one version of IP", w.From, w.At, w.To)
	}
	if err := versions[i].forwards(); err != nil {
		return nil, err
	}
	if n.families[i] == nil {
		return nil, fmt.Errorf("%s was not forwarded when the forwarder started", versions[i].name)
	}
	return n.families[i], n.families[i].lost
}

// OpenWays opens ways and returns the entry address of each: its own address and a free port. At
// most MaxWays may be open at a time. On an error none of them is open. A way takes less than 0.1
// ms.
func (n *Table) OpenWays(ways []Way) (at []netip.AddrPort, err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if len(n.ways)+len(ways) > MaxWays {
		return nil, fmt.Errorf("%d ways are open, and at most %d can be", len(n.ways), MaxWays)
	}
	for _, w := range ways {
		here, err := n.reserve(w)
		if err != nil {
			n.release(at)
			return nil, err
		}
		at = append(at, here)
	}
	for i, some := range n.divide(at) {
		if err := n.change(1, some); err != nil {
			for _, before := range n.divide(at)[:i] {
				err = errors.Join(err, n.change(-1, before))
			}
			n.release(at)
			return nil, err
		}
	}
	return at, nil
}

// CloseWays lets no new connections pass over the ways that begin at these addresses; open ones go
// on. It ignores ways that are not open, or have ended with the table.
func (n *Table) CloseWays(at []netip.AddrPort) (err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	at = slices.DeleteFunc(slices.Clone(at), func(here netip.AddrPort) bool { return n.ways[here] == nil })
	for _, some := range n.divide(at) {
		if n.familyAt(some[0]).lost == nil {
			err = errors.Join(err, n.change(-1, some))
		}
	}
	n.release(at)
	return err
}

// divide returns the addresses of open ways in lists of one family and at most atOnce elements.
func (n *Table) divide(at []netip.AddrPort) (lists [][]netip.AddrPort) {
	for _, is6 := range []bool{false, true} {
		some := slices.DeleteFunc(slices.Clone(at), func(here netip.AddrPort) bool { return here.Addr().Is6() != is6 })
		lists = slices.AppendSeq(lists, slices.Chunk(some, atOnce))
	}
	return lists
}

// familyAt returns the family of an address at which a way is open.
func (n *Table) familyAt(here netip.AddrPort) *family {
	if here.Addr().Is6() {
		return n.families[1]
	}
	return n.families[0]
}

// change has the kernel add (by is 1) or remove (-1) the ways that begin at addresses of one
// family.
func (n *Table) change(by int, at []netip.AddrPort) error {
	var ways []*Way
	for _, here := range at {
		ways = append(ways, &n.ways[here].Way)
	}
	return n.familyAt(at[0]).change(by, ways, at)
}

// reserve reserves a port for a way, and records the way as open.
func (n *Table) reserve(w Way) (here netip.AddrPort, err error) {
	if _, err := n.of(&w); err != nil {
		return here, err
	}
	fd, here, err := reserve(w.At)
	if err != nil {
		return here, fmt.Errorf("a port at %v: %w", w.At, err)
	}
	n.ways[here] = &way{w, fd}
	return here, nil
}

// release frees the ports of ways, and forgets the ways.
func (n *Table) release(at []netip.AddrPort) {
	for _, here := range at {
		unix.Close(n.ways[here].port)
		delete(n.ways, here)
	}
}

// Close removes the table. Connections that it has forwarded break, unless another program
// translates addresses on this host.
func (n *Table) Close() (err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, f := range n.families {
		if f != nil {
			err = errors.Join(err, f.close())
		}
	}
	for _, w := range n.ways {
		unix.Close(w.port)
	}
	clear(n.ways)
	return err
}

// reserve reserves a free port of this host at address at: it binds a socket to the port and
// returns both. The socket does not listen, so a client is refused once the table is gone.
func reserve(at netip.Addr) (fd int, here netip.AddrPort, err error) {
	domain, bound := unix.AF_INET6, unix.Sockaddr(&unix.SockaddrInet6{Addr: at.As16()})
	if at.Is4() {
		domain, bound = unix.AF_INET, &unix.SockaddrInet4{Addr: at.As4()}
	}
	if fd, err = unix.Socket(domain, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0); err != nil {
		return -1, here, err
	}
	if err = unix.Bind(fd, bound); err == nil {
		var sa unix.Sockaddr
		if sa, err = unix.Getsockname(fd); err == nil {
			port := 0
			switch a := sa.(type) {
			case *unix.SockaddrInet4:
				port = a.Port
			case *unix.SockaddrInet6:
				port = a.Port
			}
			return fd, netip.AddrPortFrom(at, uint16(port)), nil
		}
	}
	unix.Close(fd)
	return -1, here, err
}
