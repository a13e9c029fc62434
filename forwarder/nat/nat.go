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
	"time"

	"golang.org/x/sys/unix"
)

// Kernel forwards connections of ranks: a *Table. Ranks of different clusters that exchange much
// then have direct links, each of which begins at a port of this host. It is safe for concurrent
// use.
type Kernel interface {
	// Forwards reports whether ways may begin at an address of this host. It does not wait for the
	// kernel.
	Forwards(at netip.Addr) bool
	// OpenWays opens ways and returns where each begins, or an invalid address for one that could
	// not be opened, of which the error has the reason. It may take as long as the kernel does: it
	// is not called on an event loop, nor with a lock held.
	OpenWays(ways []Way) ([]netip.AddrPort, error)
	// CloseWays closes the ways that begin at these addresses. It may take as long as OpenWays.
	CloseWays(at []netip.AddrPort) error
}

// Way is a way for connections: those of the host From to a free port of this host, at the address
// At, are forwarded to the address and port To.
type Way struct {
	From, At netip.Addr
	To       netip.AddrPort
}

// Table has the connections that the kernel forwards for one process, in tables of nftables. It is
// safe for concurrent use. The kernel's tables are made when the first way is opened: from then on
// the kernel tracks all connections of this host. A table that is lost is made again.
type Table struct {
	mu       sync.Mutex
	closed   bool
	families [len(versions)]*family  // nil: the kernel has no table for that version
	failures [len(versions)]failure  // the last failures to make tables
	ways     map[netip.AddrPort]*way // the open ways, by the address where they begin
}

// failure is a failure to make a table.
type failure struct {
	err error
	at  time.Time
}

// way is an open way.
type way struct {
	Way
	port int // the descriptor of the socket that reserves the port
}

// Open returns a table without ways, for connections at addresses of this host. The caller must
// close the table. If this host can forward packets of no version of IP, Open returns an error with
// the reason for each version of the addresses, or that for IPv4 if there are none. To find out, it
// makes a table in the kernel and removes it.
func Open(at ...netip.Addr) (*Table, error) {
	var failed [len(versions)]error
	for i, v := range versions {
		f, err := openFamily(v)
		if err == nil {
			err = f.close()
		}
		failed[i] = err
	}
	if slices.Contains(failed[:], nil) {
		return &Table{ways: map[netip.AddrPort]*way{}}, nil
	}
	if len(at) == 0 {
		at = []netip.Addr{netip.IPv4Unspecified()}
	}
	var reasons []error
	for _, a := range at {
		reasons = append(reasons, failed[index(a)])
	}
	return nil, fmt.Errorf("%w (docs/howto/direct-links.md has all conditions)", oneLine(reasons...))
}

// Forwards reports whether ways may begin at an address of this host: it forwards packets of that
// version of IP now, and the address is not a link-local one.
func (n *Table) Forwards(at netip.Addr) bool {
	return at.IsValid() && !at.IsLinkLocalUnicast() && versions[index(at)].forwards() == nil
}

// index returns the index of an address's version of IP in versions.
func index(at netip.Addr) int {
	if at.Is6() {
		return 1
	}
	return 0
}

// of returns the family of a way's addresses, whose table it makes if there is none. It returns an
// error if this host does not forward its packets.
func (n *Table) of(w *Way) (*family, error) {
	i := index(w.At)
	if w.From.Is6() != w.At.Is6() || w.To.Addr().Is6() != w.At.Is6() || w.At.Is4In6() || w.At.Zone() != "" ||
		!w.At.IsValid() || !w.From.IsValid() || !w.To.IsValid() {
		return nil, fmt.Errorf("from %v at %v to %v: want addresses of one version of IP", w.From, w.At, w.To)
	}
	if err := versions[i].forwards(); err != nil {
		return nil, err
	}
	if f := n.families[i]; f != nil && f.lost == nil {
		return f, nil
	}
	if n.closed {
		return nil, errors.New("nftables: the table is closed")
	}
	if last := &n.failures[i]; last.err != nil && time.Since(last.at) < retryTime {
		return nil, last.err
	}
	f, err := openFamily(versions[i])
	n.families[i], n.failures[i] = f, failure{err, time.Now()}
	return f, err
}

// forget forgets a family whose table is lost, and its ways.
func (n *Table) forget(i int) {
	var at []netip.AddrPort
	for here := range n.ways {
		if index(here.Addr()) == i {
			at = append(at, here)
		}
	}
	n.release(at)
	n.families[i] = nil
}

// OpenWays opens ways and returns the entry address of each: its own address and a free port. At
// most MaxWays may be open at a time. A way that could not be opened has an invalid address, and
// the error has the reason, or several different ones. A way takes less than 0.1 ms.
func (n *Table) OpenWays(ways []Way) (at []netip.AddrPort, err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	at = make([]netip.AddrPort, len(ways))
	var opened []netip.AddrPort
	var reasons []error
	for i, w := range ways {
		here, err := n.reserve(w)
		if err != nil {
			reasons = append(reasons, err)
			continue
		}
		at[i], opened = here, append(opened, here)
	}
	for _, some := range n.divide(opened) {
		if n.ways[some[0]] == nil { // The table was lost with an earlier part.
			continue
		}
		if err := n.change(1, some); err != nil { // The kernel's table is lost, with all its ways.
			reasons = append(reasons, err)
			n.forget(index(some[0].Addr()))
		}
	}
	for i, here := range at {
		if n.ways[here] == nil {
			at[i] = netip.AddrPort{}
		}
	}
	return at, oneLine(reasons...)
}

// CloseWays lets no new connections pass over the ways that begin at these addresses; open ones go
// on. It ignores ways that are not open, or have ended with the kernel's table.
func (n *Table) CloseWays(at []netip.AddrPort) (err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	at = slices.DeleteFunc(slices.Clone(at), func(here netip.AddrPort) bool { return n.ways[here] == nil })
	for _, some := range n.divide(at) {
		if n.ways[some[0]] == nil { // The table was lost with an earlier part.
			continue
		}
		if e := n.change(-1, some); e != nil {
			err = errors.Join(err, e)
			n.forget(index(some[0].Addr()))
			continue
		}
		n.release(some)
	}
	return oneLine(err)
}

// divide returns the addresses of open ways in lists of one family and at most atOnce elements.
func (n *Table) divide(at []netip.AddrPort) (lists [][]netip.AddrPort) {
	for i := range versions {
		some := slices.DeleteFunc(slices.Clone(at), func(here netip.AddrPort) bool { return index(here.Addr()) != i })
		lists = slices.AppendSeq(lists, slices.Chunk(some, atOnce))
	}
	return lists
}

// change has the kernel add (by is 1) or remove (-1) the ways that begin at addresses of one
// family.
func (n *Table) change(by int, at []netip.AddrPort) error {
	var ways []*Way
	for _, here := range at {
		ways = append(ways, &n.ways[here].Way)
	}
	return n.families[index(at[0].Addr())].change(by, ways, at)
}

// reserve reserves a port for a way, and records the way as open.
func (n *Table) reserve(w Way) (here netip.AddrPort, err error) {
	if len(n.ways) >= MaxWays {
		return here, fmt.Errorf("%d ways are open, which is the most that can be", MaxWays)
	}
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
	n.closed = true
	for _, f := range n.families {
		if f != nil && f.lost == nil {
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
