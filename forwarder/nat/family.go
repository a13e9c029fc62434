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
	"time"

	"github.com/google/nftables"
	"github.com/google/nftables/expr"
	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"
)

// family has the ways of one version of IP, in a table of nftables. It is not safe for concurrent
// use.
type family struct {
	version
	conn  *nftables.Conn
	link  *netlink.Conn          // the netlink connection that conn uses
	lost  error                  // the error after which the table is no longer used, or nil
	doors *nftables.Set          // the kernel's map of ways: client, own address and port → the other host's
	to    *nftables.Set          // the kernel's set of the other hosts' addresses and ports
	uses  map[netip.AddrPort]int // the number of ways to each element of to
}

// version has the differences between versions of IP.
type version struct {
	name    string
	family  nftables.TableFamily
	proto   uint32               // the number of the version in rules
	address nftables.SetDatatype // the type of an address
	from    uint32               // the offset of the source's address in a packet, in bytes
	to      uint32               // the offset of the destination's address
	setting string               // the file that says whether this process's network namespace forwards packets
	advice  string               // the command that makes it forward packets
}

// versions has the two versions of IP, that of most clusters first.
var versions = [...]version{
	{"IP", nftables.TableFamilyIPv4, unix.NFPROTO_IPV4, nftables.TypeIPAddr, 12, 16,
		"/proc/sys/net/ipv4/ip_forward", "net.ipv4.ip_forward=1"},
	{"IPv6", nftables.TableFamilyIPv6, unix.NFPROTO_IPV6, nftables.TypeIP6Addr, 8, 24,
		"/proc/sys/net/ipv6/conf/all/forwarding", "net.ipv6.conf.all.forwarding=1"},
}

// openFamily makes an nftables table that forwards no connections yet.
func openFamily(v version) (*family, error) {
	if err := errors.Join(privilege(), v.forwards()); err != nil {
		return nil, err
	}
	// Containers that share a network may have equal process ids.
	t := &nftables.Table{Name: fmt.Sprintf("zipper-%d-%08x", os.Getpid(), rand.Uint32()), Family: v.family}
	var link *netlink.Conn
	conn, err := nftables.New(nftables.AsLasting(), nftables.WithSockOptions(func(c *netlink.Conn) error {
		link = c
		return create(c, t)
	}))
	if err != nil {
		return nil, fmt.Errorf("nftables: cannot make a table, which requires CAP_NET_ADMIN and Linux 5.12: %w", err)
	}
	client := nftables.MustConcatSetType(v.address, v.address, nftables.TypeInetService)
	place := nftables.MustConcatSetType(v.address, nftables.TypeInetService)
	f := &family{version: v, conn: conn, link: link, uses: map[netip.AddrPort]int{},
		doors: &nftables.Set{Table: t, ID: 1, Name: "doors", IsMap: true, KeyType: client, DataType: place,
			Concatenation: true},
		to: &nftables.Set{Table: t, ID: 2, Name: "to", KeyType: place, Concatenation: true}}
	if err := f.rules(t); err != nil {
		return nil, errors.Join(err, f.close())
	}
	return f, nil
}

// forwards returns an error if this host does not forward packets.
func (v *version) forwards() error {
	on, err := os.ReadFile(v.setting)
	if err != nil {
		return fmt.Errorf("is %s forwarding on? %w", v.name, err)
	}
	if string(bytes.TrimSpace(on)) != "1" {
		return fmt.Errorf("%s forwarding is off: sysctl -w %s", v.name, v.advice)
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

const (
	tableOwner = 0x2  // NFT_TABLE_F_OWNER, linux/netfilter/nf_tables.h
	statusDNAT = 0x20 // IPS_DST_NAT of Linux
)

// rules makes the sets and rules of the table.
func (f *family) rules(t *nftables.Table) error {
	for _, s := range []*nftables.Set{f.doors, f.to} {
		if err := f.conn.AddSet(s, nil); err != nil {
			return err
		}
	}
	// A concatenation lies in consecutive registers of 4 bytes, the first of which is the whole of
	// register 1.
	const first, words = unix.NFT_REG_1, unix.NFT_REG32_00
	size := f.address.Bytes
	second, third := words+size/4, words+2*size/4
	address := func(register, offset uint32) expr.Any {
		return &expr.Payload{DestRegister: register, Base: expr.PayloadBaseNetworkHeader, Offset: offset, Len: size}
	}
	port := func(register uint32) expr.Any { // the destination's
		return &expr.Payload{DestRegister: register, Base: expr.PayloadBaseTransportHeader, Offset: 2, Len: 2}
	}
	tcp := []expr.Any{
		&expr.Meta{Key: expr.MetaKeyL4PROTO, Register: first},
		&expr.Cmp{Op: expr.CmpOpEq, Register: first, Data: []byte{unix.IPPROTO_TCP}},
	}
	chain := func(name string, hook *nftables.ChainHook, priority *nftables.ChainPriority, then ...expr.Any) {
		c := f.conn.AddChain(&nftables.Chain{Name: name, Table: t, Type: nftables.ChainTypeNAT, Hooknum: hook,
			Priority: priority})
		f.conn.AddRule(&nftables.Rule{Table: t, Chain: c, Exprs: slices.Concat(tcp, then)})
	}
	pass := []expr.Any{
		address(first, f.version.from), address(second, f.version.to), port(third),
		&expr.Lookup{SourceRegister: first, DestRegister: first, IsDestRegSet: true, SetName: f.doors.Name,
			SetID: f.doors.ID},
		&expr.NAT{Type: expr.NATTypeDestNAT, Family: f.proto, RegAddrMin: first, RegProtoMin: second},
	}
	chain("prerouting", nftables.ChainHookPrerouting, nftables.ChainPriorityNATDest, pass...)
	chain("output", nftables.ChainHookOutput, nftables.ChainPriorityNATDest, pass...) // from processes of this host
	chain("postrouting", nftables.ChainHookPostrouting, nftables.ChainPriorityNATSource,
		// Masquerading would drop what stays on this host: the loopback interface has no address
		// that is good elsewhere.
		&expr.Meta{Key: expr.MetaKeyOIFTYPE, Register: unix.NFT_REG_2},
		&expr.Cmp{Op: expr.CmpOpNeq, Register: unix.NFT_REG_2,
			Data: binary.NativeEndian.AppendUint16(nil, unix.ARPHRD_LOOPBACK)},
		// Other connections to the same address and port keep their source.
		&expr.Ct{Key: expr.CtKeySTATUS, Register: first},
		&expr.Bitwise{SourceRegister: first, DestRegister: first, Len: 4,
			Mask: binary.NativeEndian.AppendUint32(nil, statusDNAT), Xor: make([]byte, 4)},
		&expr.Cmp{Op: expr.CmpOpNeq, Register: first, Data: make([]byte, 4)},
		address(first, f.version.to), port(second),
		&expr.Lookup{SourceRegister: first, SetName: f.to.Name, SetID: f.to.ID}, &expr.Masq{})
	return f.flush()
}

// flush sends the queued requests to the kernel and waits for the answers. If the kernel does not
// answer, or refuses, the state of the table and the order of the answers are unknown, so the table
// is given up.
func (f *family) flush() error {
	if f.lost == nil {
		f.lost = errors.Join(f.link.SetDeadline(time.Now().Add(answerTime)), f.conn.Flush())
		if f.lost != nil {
			f.lost = fmt.Errorf("nftables: %w", errors.Join(f.lost, f.conn.CloseLasting()))
		}
	}
	return f.lost
}

// element returns a way's element of the map of ways, for connections to the address here.
func (w *Way) element(here netip.AddrPort) nftables.SetElement {
	return nftables.SetElement{Key: append(w.From.AsSlice(), concat(here)...), Val: concat(w.To)}
}

// use adds by, 1 or -1, to the number of ways that lead to a destination. It returns the element of
// the set of destinations if that is new or no longer used.
func (f *family) use(to netip.AddrPort, by int) (list []nftables.SetElement) {
	if f.uses[to] += by; f.uses[to] == max(by, 0) {
		list = []nftables.SetElement{{Key: concat(to)}}
	}
	if f.uses[to] == 0 {
		delete(f.uses, to)
	}
	return list
}

// change has the kernel add ways (by is 1) or remove them (-1). The ways begin at the addresses at.
func (f *family) change(by int, ways []*Way, at []netip.AddrPort) error {
	var doors, to []nftables.SetElement
	for i, w := range ways {
		doors, to = append(doors, w.element(at[i])), append(to, f.use(w.To, by)...)
	}
	do := f.conn.SetAddElements
	if by < 0 {
		do = f.conn.SetDeleteElements
	}
	if f.lost != nil {
		return f.lost
	}
	return errors.Join(do(f.doors, doors), do(f.to, to), f.flush())
}

// close removes the table.
func (f *family) close() error {
	if f.lost == nil {
		f.lost = errors.New("the table is closed")
	}
	return f.conn.CloseLasting()
}

// concat returns the bytes of an address and a port as a key of the kernel's tables: those of the
// address, then 2 for the port and 2 zero bytes.
func concat(a netip.AddrPort) []byte {
	return append(a.Addr().AsSlice(), byte(a.Port()>>8), byte(a.Port()), 0, 0)
}
