// Package nat lets this host's kernel forward TCP connections between its networks: a client that
// connects to a port of this host is connected to an address on another network, and each end sees
// only this host (nftables: destination NAT and masquerading). The bytes never enter user space.
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
	"io"
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

// Way is a way for connections: those to a free port of this host, at the address At, are forwarded
// to the address and port To.
type Way struct {
	At netip.Addr
	To netip.AddrPort
}

// Table has the connections that the kernel forwards for one process, in a table of nftables. It is
// safe for concurrent use.
type Table struct {
	mu    sync.Mutex
	conn  *nftables.Conn
	link  *netlink.Conn          // the netlink connection that conn uses
	lost  error                  // the error after which the table is no longer used, or nil
	open  int                    // the number of open ways
	doors *nftables.Set          // the kernel's map of ways: own address and port → the other host's
	to    *nftables.Set          // the kernel's set of the other hosts' addresses and ports
	uses  map[netip.AddrPort]int // the number of ways to each element of to
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
	key := nftables.MustConcatSetType(nftables.TypeIPAddr, nftables.TypeInetService)
	n := &Table{conn: conn, link: link, uses: map[netip.AddrPort]int{},
		doors: &nftables.Set{Table: t, ID: 1, Name: "doors", IsMap: true, KeyType: key, DataType: key,
			Concatenation: true},
		to: &nftables.Set{Table: t, ID: 2, Name: "to", KeyType: key, Concatenation: true}}
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
	const first, second = unix.NFT_REG_1, unix.NFT_REG32_01
	destination := []expr.Any{
		&expr.Meta{Key: expr.MetaKeyL4PROTO, Register: first},
		&expr.Cmp{Op: expr.CmpOpEq, Register: first, Data: []byte{unix.IPPROTO_TCP}},
		&expr.Payload{DestRegister: first, Base: expr.PayloadBaseNetworkHeader, Offset: 16, Len: 4},
		&expr.Payload{DestRegister: second, Base: expr.PayloadBaseTransportHeader, Offset: 2, Len: 2},
	}
	chain := func(name string, hook *nftables.ChainHook, priority *nftables.ChainPriority, then ...expr.Any) {
		c := n.conn.AddChain(&nftables.Chain{Name: name, Table: t, Type: nftables.ChainTypeNAT, Hooknum: hook,
			Priority: priority})
		n.conn.AddRule(&nftables.Rule{Table: t, Chain: c, Exprs: append(append([]expr.Any(nil), destination...),
			then...)})
	}
	pass := []expr.Any{
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

// OpenWays opens ways and returns the entry address of each: its own address and a free port.
// Closing lets no new connection pass; open ones stay. At most MaxWays may be open at a time. A way
// takes less than 0.1 ms.
func (n *Table) OpenWays(ways []Way) ([]netip.AddrPort, io.Closer, error) {
	if err := forwards(); err != nil { // it may have been switched off since Open
		return nil, nil, err
	}
	var at []netip.AddrPort
	var all grants
	for some := range slices.Chunk(ways, atOnce) {
		p, err := n.grant(some)
		if err != nil {
			return nil, nil, errors.Join(err, all.Close())
		}
		all = append(all, p)
		at = append(at, p.at...)
	}
	return at, all, nil
}

type grants []*grant

// Close makes the kernel forward no new connections for these ways. It returns the errors of all of
// them.
func (l grants) Close() (err error) {
	for _, p := range l {
		err = errors.Join(err, p.close())
	}
	return err
}

// grant is a group of ways that the kernel forwards and that are closed together.
type grant struct {
	at    []netip.AddrPort
	table *Table
	ports []int // the descriptors of the sockets that reserve the ports
	doors []nftables.SetElement
	to    []netip.AddrPort
}

func (n *Table) grant(ways []Way) (*grant, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.lost != nil {
		return nil, n.lost
	}
	if n.open+len(ways) > MaxWays {
		return nil, fmt.Errorf("%d ways are open, and at most %d can be", n.open, MaxWays)
	}
	p := &grant{table: n}
	for _, w := range ways {
		if !w.At.Is4() || !w.To.Addr().Is4() {
			p.release()
			return nil, fmt.Errorf("from %v to %v: want IPv4 addresses", w.At, w.To)
		}
		fd, here, err := reserve(w.At)
		if err != nil {
			p.release()
			return nil, fmt.Errorf("a port at %v: %w", w.At, err)
		}
		p.ports = append(p.ports, fd)
		p.at = append(p.at, here)
		p.doors = append(p.doors, nftables.SetElement{Key: concat(here), Val: concat(w.To)})
		p.to = append(p.to, w.To)
	}
	err := errors.Join(n.conn.SetAddElements(n.doors, p.doors), n.conn.SetAddElements(n.to, n.use(p.to, 1)), n.flush())
	if err != nil {
		p.release()
		return nil, err
	}
	n.open += len(ways)
	return p, nil
}

func (p *grant) close() error {
	defer p.release()
	n := p.table
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.lost != nil {
		return n.lost
	}
	n.open -= len(p.doors)
	return errors.Join(n.conn.SetDeleteElements(n.doors, p.doors),
		n.conn.SetDeleteElements(n.to, n.use(p.to, -1)), n.flush())
}

// use adds by, 1 or -1, to the number of ways that lead to each destination. It returns the
// destinations that are new or no longer used.
func (n *Table) use(to []netip.AddrPort, by int) (list []nftables.SetElement) {
	for _, a := range to {
		if n.uses[a] += by; n.uses[a] == max(by, 0) {
			list = append(list, nftables.SetElement{Key: concat(a)})
		}
		if n.uses[a] == 0 {
			delete(n.uses, a)
		}
	}
	return list
}

func (p *grant) release() {
	for _, fd := range p.ports {
		unix.Close(fd)
	}
}

// Close removes the table. Connections that it has forwarded break, unless another program
// translates addresses on this host.
func (n *Table) Close() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.lost == nil {
		n.lost = errors.New("the table is closed")
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
