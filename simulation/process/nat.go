package process

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"time"

	"golang.org/x/sys/unix"

	"github.com/leidenzipper/zipper/forwarder/nat"
	"github.com/leidenzipper/zipper/simulation/kernel"
)

// NAT is the part of the kernel of a forwarder's host that forwards connections between ranks
// (nat.Kernel). A connection that it forwards is one between the two ranks. The connection breaks
// when the table is lost, as it does when a real kernel no longer translates its packets.
type NAT struct {
	Most int // largest number of ways that were open at a time
	Made int // number of connections that were made

	world *World
	ways  map[netip.AddrPort]nat.Way // ways that are open, by the address where they begin
	port  uint16                     // port of the last way
	fails time.Duration              // virtual time until which no way can be opened
	conns []*kernel.End              // dialling ends of the connections that it forwards
}

const (
	// firstPort is the first port at which a way begins.
	firstPort = 32768

	// slowest is the longest time for which a request waits for the kernel.
	slowest = 5 * time.Millisecond
)

// errNoTable is the error of OpenWays while the table cannot be made.
var errNoTable = errors.New("the table cannot be made")

// Forwards implements nat.Kernel: it reports whether the address is valid.
func (n *NAT) Forwards(at netip.Addr) bool { return at.IsValid() }

// OpenWays implements nat.Kernel. The caller must be a thread.
func (n *NAT) OpenWays(ways []nat.Way) ([]netip.AddrPort, error) {
	k := n.world.K
	k.Sleep(time.Duration(k.Rand.Int64N(int64(slowest))))
	at := make([]netip.AddrPort, len(ways))
	if k.Now() < n.fails {
		return at, errNoTable
	}
	for i, w := range ways {
		for n.port++; ; n.port++ {
			n.port = max(n.port, firstPort)
			at[i] = netip.AddrPortFrom(w.At, n.port)
			if _, taken := n.ways[at[i]]; !taken {
				break
			}
		}
		n.ways[at[i]] = w
	}
	n.Most = max(n.Most, len(n.ways))
	return at, nil
}

// CloseWays implements nat.Kernel. The caller must be a thread.
func (n *NAT) CloseWays(at []netip.AddrPort) error {
	k := n.world.K
	k.Sleep(time.Duration(k.Rand.Int64N(int64(slowest))))
	for _, a := range at {
		delete(n.ways, a)
	}
	return nil
}

// Lose removes the table: all ways are closed, and all connections break. For the time d no table
// can be made. If silent is true the network drops the packets of the connections, and their ends
// get no error.
func (n *NAT) Lose(d time.Duration, silent bool) {
	k := n.world.K
	clear(n.ways)
	n.fails = max(n.fails, k.Now()+d)
	for _, e := range n.conns {
		if silent {
			e.Mute()
		} else {
			e.Cut(time.Duration(k.Rand.Int64N(int64(slowest))), time.Duration(k.Rand.Int64N(int64(slowest))))
		}
	}
	n.conns = nil
}

// Open returns the number of open ways.
func (n *NAT) Open() int { return len(n.ways) }

// Connections returns the number of connections that are forwarded.
func (n *NAT) Connections() int {
	n.conns = open(n.conns)
	return len(n.conns)
}

// connect opens a connection of process p over the way that begins at an address.
func (n *NAT) connect(ctx context.Context, p *kernel.Process, at netip.AddrPort) (*kernel.End, error) {
	refused := fmt.Errorf("dial %v: %w", at, unix.ECONNREFUSED)
	way, ok := n.ways[at]
	if !ok || way.From != p.Address {
		return nil, refused
	}
	e, err := n.world.Dial(ctx, p, way.To.String())
	if err != nil {
		return nil, err
	}
	if n.ways[at] != way { // it was closed before the connection was made
		e.Close()
		return nil, refused
	}
	if len(n.conns) == cap(n.conns) {
		n.conns = open(n.conns)
	}
	n.conns = append(n.conns, e)
	n.Made++
	return e, nil
}

// open returns the connections in list that are open, in its memory.
func open(list []*kernel.End) []*kernel.End {
	kept := list[:0]
	for _, e := range list {
		if e.Open() {
			kept = append(kept, e)
		}
	}
	return kept
}

// over opens a connection of process p at an address of a forwarder's host.
func (w *World) over(ctx context.Context, p *kernel.Process, addr string) (*kernel.End, error) {
	at, err := netip.ParseAddrPort(addr)
	if err != nil {
		return nil, err
	}
	for _, z := range w.forwarders {
		if z.NAT != nil && z.home == at.Addr() {
			return z.NAT.connect(ctx, p, at)
		}
	}
	return nil, fmt.Errorf("dial %v: %w", at, unix.EHOSTUNREACH)
}
