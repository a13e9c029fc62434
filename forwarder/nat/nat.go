// Package nat lets this host's kernel forward TCP connections between its networks: a client on a
// certain host that connects to a port of this host is connected to an address on another network,
// and each end sees only this host (nftables: destination NAT and masquerading). The bytes never
// enter user space. A connection goes on when its way is closed.
//
// All rules are in one table that belongs to an open Table ("flags owner"): the kernel removes them
// in any case when its process ends. Package nat requires CAP_NET_ADMIN, Linux 5.12 and
// net.ipv4.ip_forward=1. It supports only IPv4.
package nat

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/google/nftables"
	"github.com/google/nftables/expr"
	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"
)

// Way is a way for connections: those of the host From to a free port of this host, at the address
// At, are forwarded to the address and port To.
type Way struct {
	From, At netip.Addr
	To       netip.AddrPort
}

// Table has the connections that the kernel forwards for one process, in a table of nftables. It is
// safe for concurrent use.
type Table struct {
	mu    sync.Mutex
	conn  *nftables.Conn
	link  *netlink.Conn           // the netlink connection that conn uses
	lost  error                   // the error after which the table is no longer used, or nil
	ways  map[netip.AddrPort]*way // the open ways, by the address where they begin
	doors *nftables.Set           // the kernel's map of ways: client, own address and port → the other host's
	to    *nftables.Set           // the kernel's set of the other hosts' addresses and ports
	uses  map[netip.AddrPort]int  // the number of ways to each element of to
}

const forwarding = "/proc/sys/net/ipv4/ip_forward" // in this process's network namespace

// Open makes an nftables table that forwards no connections yet. The caller must close it.
func Open() (*Table, error) {
	if err := forwards(); err != nil {
		return nil, err
	}
	// Containers that share a network may have equal process ids.
	t := &nftables.Table{Name: fmt.Sprintf("zipper-%d-%08x", os.Getpid(), rand.Uint32()),
		Family: nftables.TableFamilyIPv4}
	var link *netlink.Conn
	conn, err := nftables.New(nftables.AsLasting(), nftables.WithSockOptions(func(c *netlink.Conn) error {
		link = c
		return create(c, t)
	}))
	if err != nil {
		return nil, fmt.Errorf("nftables: cannot make a table: %w (it requires CAP_NET_ADMIN and Linux 5.12)", err)
	}
	client := nftables.MustConcatSetType(nftables.TypeIPAddr, nftables.TypeIPAddr, nftables.TypeInetService)
	place := nftables.MustConcatSetType(nftables.TypeIPAddr, nftables.TypeInetService)
	n := &Table{conn: conn, link: link, ways: map[netip.AddrPort]*way{}, uses: map[netip.AddrPort]int{},
		doors: &nftables.Set{Table: t, ID: 1, Name: "doors", IsMap: true, KeyType: client, DataType: place,
			Concatenation: true},
		to: &nftables.Set{Table: t, ID: 2, Name: "to", KeyType: place, Concatenation: true}}
	if err := n.rules(t); err != nil {
		n.Close()
		return nil, err
	}
	return n, nil
}

// forwards returns an error if this host does not forward packets.
func forwards() error {
	on, err := os.ReadFile(forwarding)
	if err != nil {
		return fmt.Errorf("is IP forwarding on? %w", err)
	}
	if string(bytes.TrimSpace(on)) != "1" {
		return errors.New("IP forwarding is off: sysctl -w net.ipv4.ip_forward=1 (docs/howto/direct-links.md lists the other conditions)")
	}
	return nil
}

// create creates the table t in the kernel, over c. It does so itself, because the library cannot
// set an owner, and a table created over another connection would belong to that.
func create(c *netlink.Conn, t *nftables.Table) error {
	attrs := netlink.NewAttributeEncoder()
	attrs.String(unix.NFTA_TABLE_NAME, t.Name)
	attrs.Bytes(unix.NFTA_TABLE_FLAGS, []byte{0, 0, 0, tableOwner})
	table, err := attrs.Encode()
	if err != nil {
		return err
	}
	message := func(kind int, flags netlink.HeaderFlags, family byte, resource byte, data []byte) netlink.Message {
		return netlink.Message{Header: netlink.Header{Type: netlink.HeaderType(kind),
			Flags: netlink.Request | flags}, Data: append([]byte{family, 0, 0, resource}, data...)}
	}
	const subsystem = unix.NFNL_SUBSYS_NFTABLES
	_, err = c.SendMessages([]netlink.Message{
		message(unix.NFNL_MSG_BATCH_BEGIN, 0, 0, subsystem, nil),
		message(subsystem<<8|unix.NFT_MSG_NEWTABLE, netlink.Acknowledge|netlink.Create|netlink.Excl,
			byte(t.Family), 0, table),
		message(unix.NFNL_MSG_BATCH_END, 0, 0, subsystem, nil),
	})
	if err == nil {
		_, err = c.Receive()
	}
	return err
}

const tableOwner = 0x2 // NFT_TABLE_F_OWNER, linux/netfilter/nf_tables.h

func (n *Table) rules(t *nftables.Table) error {
	for _, s := range []*nftables.Set{n.doors, n.to} {
		if err := n.conn.AddSet(s, nil); err != nil {
			return err
		}
	}
	// A concatenation lies in consecutive registers of 4 bytes, the first of which is the whole of
	// register 1.
	const first, second, third = unix.NFT_REG_1, unix.NFT_REG32_01, unix.NFT_REG32_02
	field := func(register uint32, base expr.PayloadBase, offset, length uint32) expr.Any {
		return &expr.Payload{DestRegister: register, Base: base, Offset: offset, Len: length}
	}
	tcp := []expr.Any{
		&expr.Meta{Key: expr.MetaKeyL4PROTO, Register: first},
		&expr.Cmp{Op: expr.CmpOpEq, Register: first, Data: []byte{unix.IPPROTO_TCP}},
	}
	chain := func(name string, hook *nftables.ChainHook, priority *nftables.ChainPriority, then ...expr.Any) {
		c := n.conn.AddChain(&nftables.Chain{Name: name, Table: t, Type: nftables.ChainTypeNAT, Hooknum: hook,
			Priority: priority})
		n.conn.AddRule(&nftables.Rule{Table: t, Chain: c, Exprs: slices.Concat(tcp, then)})
	}
	pass := []expr.Any{
		field(first, expr.PayloadBaseNetworkHeader, 12, 4),  // the source's address
		field(second, expr.PayloadBaseNetworkHeader, 16, 4), // the destination's
		field(third, expr.PayloadBaseTransportHeader, 2, 2), // its port
		&expr.Lookup{SourceRegister: first, DestRegister: first, IsDestRegSet: true, SetName: n.doors.Name,
			SetID: n.doors.ID},
		&expr.NAT{Type: expr.NATTypeDestNAT, Family: unix.NFPROTO_IPV4, RegAddrMin: first, RegProtoMin: second},
	}
	chain("prerouting", nftables.ChainHookPrerouting, nftables.ChainPriorityNATDest, pass...)
	chain("output", nftables.ChainHookOutput, nftables.ChainPriorityNATDest, pass...) // from processes of this host
	chain("postrouting", nftables.ChainHookPostrouting, nftables.ChainPriorityNATSource,
		// Masquerading would drop what stays on this host: the loopback interface has no address
		// that is good elsewhere.
		&expr.Meta{Key: expr.MetaKeyOIFTYPE, Register: unix.NFT_REG_2},
		&expr.Cmp{Op: expr.CmpOpNeq, Register: unix.NFT_REG_2,
			Data: binary.NativeEndian.AppendUint16(nil, unix.ARPHRD_LOOPBACK)},
		field(first, expr.PayloadBaseNetworkHeader, 16, 4), field(second, expr.PayloadBaseTransportHeader, 2, 2),
		&expr.Lookup{SourceRegister: first, SetName: n.to.Name, SetID: n.to.ID}, &expr.Masq{})
	return n.flush()
}

// flush sends the queued requests to the kernel and waits for the answers. If the kernel does not
// answer, or refuses, the state of the table and the order of the answers are unknown, so the table
// is given up. The caller holds mu.
func (n *Table) flush() error {
	if n.lost == nil {
		n.lost = errors.Join(n.link.SetDeadline(time.Now().Add(answerTime)), n.conn.Flush())
		if n.lost != nil {
			n.lost = fmt.Errorf("nftables: %w", errors.Join(n.lost, n.conn.CloseLasting()))
		}
	}
	return n.lost
}

// way is an open way.
type way struct {
	Way
	port int // the descriptor of the socket that reserves the port
}

// element returns the way's element of the map of ways, for connections to the address here.
func (w *way) element(here netip.AddrPort) nftables.SetElement {
	from := w.From.As4()
	return nftables.SetElement{Key: append(from[:], concat(here)...), Val: concat(w.To)}
}

// OpenWays opens ways and returns the entry address of each: its own address and a free port. At
// most MaxWays may be open at a time. On an error none of them is open. A way takes less than 0.1
// ms.
func (n *Table) OpenWays(ways []Way) (at []netip.AddrPort, err error) {
	if err := forwards(); err != nil { // it may have been switched off since Open
		return nil, err
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	for some := range slices.Chunk(ways, atOnce) {
		more, err := n.open(some)
		if err != nil {
			return nil, errors.Join(err, n.close(at))
		}
		at = append(at, more...)
	}
	return at, nil
}

// CloseWays lets no new connections pass over the ways that begin at these addresses; open ones go
// on. It ignores ways that are not open, or have ended with the table.
func (n *Table) CloseWays(at []netip.AddrPort) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.close(at)
}

// open opens at most atOnce ways. The caller holds mu.
func (n *Table) open(ways []Way) (at []netip.AddrPort, err error) {
	if n.lost != nil {
		return nil, n.lost
	}
	if len(n.ways)+len(ways) > MaxWays {
		return nil, fmt.Errorf("%d ways are open, and at most %d can be", len(n.ways), MaxWays)
	}
	var doors, to []nftables.SetElement
	for _, w := range ways {
		var here netip.AddrPort
		if here, err = n.reserve(w); err != nil {
			break
		}
		at = append(at, here)
		doors, to = append(doors, n.ways[here].element(here)), append(to, n.use(w.To, 1)...)
	}
	if err == nil {
		err = errors.Join(n.conn.SetAddElements(n.doors, doors), n.conn.SetAddElements(n.to, to), n.flush())
	}
	if err == nil {
		return at, nil
	}
	for _, here := range at { // the kernel has none of them
		n.use(n.ways[here].To, -1)
		n.release(here)
	}
	return nil, err
}

// close closes ways. The caller holds mu.
func (n *Table) close(at []netip.AddrPort) (err error) {
	for some := range slices.Chunk(at, atOnce) {
		var doors, to []nftables.SetElement
		for _, here := range some {
			if w := n.ways[here]; w != nil {
				doors, to = append(doors, w.element(here)), append(to, n.use(w.To, -1)...)
				n.release(here)
			}
		}
		if n.lost == nil && len(doors) > 0 {
			err = errors.Join(err, n.conn.SetDeleteElements(n.doors, doors), n.conn.SetDeleteElements(n.to, to), n.flush())
		}
	}
	return err
}

// reserve reserves a port for a way, and records the way as open.
func (n *Table) reserve(w Way) (here netip.AddrPort, err error) {
	if !w.From.Is4() || !w.At.Is4() || !w.To.Addr().Is4() {
		return here, fmt.Errorf("from %v at %v to %v: want IPv4 addresses", w.From, w.At, w.To)
	}
	fd, here, err := reserve(w.At)
	if err != nil {
		return here, fmt.Errorf("a port at %v: %w", w.At, err)
	}
	n.ways[here] = &way{w, fd}
	return here, nil
}

// release frees the port of a way, and forgets the way.
func (n *Table) release(here netip.AddrPort) {
	unix.Close(n.ways[here].port)
	delete(n.ways, here)
}

// use adds by, 1 or -1, to the number of ways that lead to a destination. It returns the element of
// the set of destinations if that is new or no longer used.
func (n *Table) use(to netip.AddrPort, by int) (list []nftables.SetElement) {
	if n.uses[to] += by; n.uses[to] == max(by, 0) {
		list = []nftables.SetElement{{Key: concat(to)}}
	}
	if n.uses[to] == 0 {
		delete(n.uses, to)
	}
	return list
}

// Close removes the table. Connections that it has forwarded break, unless another program
// translates addresses on this host.
func (n *Table) Close() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.lost == nil {
		n.lost = errors.New("the table is closed")
	}
	for here := range n.ways {
		n.release(here)
	}
	return n.conn.CloseLasting()
}

// reserve reserves a free port of this host at address at: it binds a socket to the port and
// returns both. The socket does not listen, so a client is refused once the table is gone.
func reserve(at netip.Addr) (fd int, here netip.AddrPort, err error) {
	fd, err = unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return -1, here, err
	}
	if err = unix.Bind(fd, &unix.SockaddrInet4{Addr: at.As4()}); err == nil {
		var sa unix.Sockaddr
		if sa, err = unix.Getsockname(fd); err == nil {
			return fd, netip.AddrPortFrom(at, uint16(sa.(*unix.SockaddrInet4).Port)), nil
		}
	}
	unix.Close(fd)
	return -1, here, err
}

// concat returns the bytes of an IPv4 address and a port as a key of the kernel's tables: 4 bytes
// for the address, then 2 for the port and 2 zero bytes.
func concat(a netip.AddrPort) []byte {
	ip := a.Addr().As4()
	return append(ip[:], byte(a.Port()>>8), byte(a.Port()), 0, 0)
}
