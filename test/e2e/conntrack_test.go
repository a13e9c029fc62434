package e2e

import (
	"bytes"
	"encoding/binary"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"

	"github.com/leidenzipper/zipper/forwarder/nat"
)

// connTable is the kernel's table of connections (conntrack) of one network namespace. Its limit,
// net.netfilter.nf_conntrack_max, applies to each namespace, but only the first one can change it.
type connTable struct {
	t    *testing.T
	link *netlink.Conn
	made uint32 // the number of connections that were added
}

// largestTable is the largest number of connections that a test adds to a table. They take some 300
// MiB of the kernel's memory until their namespace is gone.
const largestTable = 1 << 20

// openConnTable opens the table of a namespace, which requires root. It skips the test where the
// kernel cannot add connections, or has room for more than largestTable.
func openConnTable(t *testing.T, namespace string) *connTable {
	t.Helper()
	f, err := os.Open("/run/netns/" + namespace)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	link, err := netlink.Dial(unix.NETLINK_NETFILTER, &netlink.Config{NetNS: int(f.Fd())})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { link.Close() })
	if _, most, err := nat.Tracked(); err != nil || most <= 0 || most > largestTable {
		t.Skipf("the kernel's table of connections has room for %d (0: any number), %v; a test fills at most %d",
			most, err, largestTable)
	}
	c := &connTable{t: t, link: link}
	for _, err := range c.request(ctNew, unix.AF_INET6, 0, c.connection()) {
		if errors.Is(err, unix.EINVAL) || errors.Is(err, unix.EOPNOTSUPP) {
			t.Skipf("needs the kernel's module nf_conntrack_netlink, to add connections: %v", err)
		}
		t.Fatal(err)
	}
	return c
}

// Messages, attributes and flags of Linux's ctnetlink.
const (
	ctNew, ctGet, ctDelete                            = unix.NFNL_SUBSYS_CTNETLINK << 8, ctNew | 1, ctNew | 2
	ctaOrig, ctaReply, ctaStatus, ctaTimeout          = 1, 2, 3, 7
	ctaProtoInfo, ctaTCP, ctaTCPState, established    = 4, 1, 1, 3
	ctaIP, ctaProto, ctaSource6, ctaDestination6      = 1, 2, 3, 4
	ctaProtoNumber, ctaSourcePort, ctaDestinationPort = 1, 2, 3
	repliedAssuredConfirmed                           = 2 | 4 | 8
)

// request sends messages about connections and returns the errors of the kernel.
func (c *connTable) request(kind netlink.HeaderType, family, version byte, bodies ...[]byte) (failed []error) {
	c.t.Helper()
	var all []netlink.Message
	for _, b := range bodies {
		all = append(all, netlink.Message{
			Header: netlink.Header{Type: kind, Flags: netlink.Request | netlink.Create | netlink.Excl | netlink.Acknowledge},
			Data:   append([]byte{family, version, 0, 0}, b...)})
	}
	if _, err := c.link.SendMessages(all); err != nil {
		c.t.Fatal(err)
	}
	for range all {
		if _, err := c.link.Receive(); err != nil {
			failed = append(failed, err)
		}
	}
	return failed
}

// connection returns a new connection of this table, as the kernel expects it. It does not exist
// outside of the table, and the kernel keeps it for an hour: an assured one gives way to no other.
func (c *connTable) connection() []byte {
	c.made++
	tuple := func(source, destination uint32) func(*netlink.AttributeEncoder) error {
		address := func(n uint32) []byte {
			return append([]byte{0xfd, 11: 0}, binary.BigEndian.AppendUint32(nil, n)...)
		}
		return func(e *netlink.AttributeEncoder) error {
			e.Nested(ctaIP, func(e *netlink.AttributeEncoder) error {
				e.Bytes(ctaSource6, address(source))
				e.Bytes(ctaDestination6, address(destination))
				return nil
			})
			e.Nested(ctaProto, func(e *netlink.AttributeEncoder) error {
				e.Uint8(ctaProtoNumber, unix.IPPROTO_UDP)
				e.Bytes(ctaSourcePort, []byte{4, 0})
				e.Bytes(ctaDestinationPort, []byte{4, 0})
				return nil
			})
			return nil
		}
	}
	e := netlink.NewAttributeEncoder()
	e.Nested(ctaOrig, tuple(c.made, 0))
	e.Nested(ctaReply, tuple(0, c.made))
	e.Bytes(ctaStatus, []byte{0, 0, 0, repliedAssuredConfirmed})
	e.Bytes(ctaTimeout, binary.BigEndian.AppendUint32(nil, 3600))
	b, err := e.Encode()
	if err != nil {
		c.t.Fatal(err)
	}
	return b
}

// drop removes the connections over IPv4 that are not established over TCP: the kernel would remove
// them before long, and have room for others.
func (c *connTable) drop() {
	c.t.Helper()
	all, err := c.link.Execute(netlink.Message{
		Header: netlink.Header{Type: ctGet, Flags: netlink.Request | netlink.Dump},
		Data:   []byte{unix.AF_INET, 0, 0, 0}})
	if err != nil {
		c.t.Fatal(err)
	}
	for _, m := range all {
		connection := m.Data[4:]
		if bytes.Equal(c.attribute(connection, ctaProtoInfo, ctaTCP, ctaTCPState), []byte{established}) {
			continue
		}
		e := netlink.NewAttributeEncoder()
		e.Bytes(netlink.Nested|ctaOrig, c.attribute(connection, ctaOrig))
		b, err := e.Encode()
		if err != nil {
			c.t.Fatal(err)
		}
		for _, err := range c.request(ctDelete, unix.AF_INET, 0, b) {
			if !errors.Is(err, unix.ENOENT) {
				c.t.Fatal(err)
			}
		}
	}
}

// attribute returns the value of an attribute that is nested in others, or nil if it is missing.
func (c *connTable) attribute(b []byte, path ...uint16) []byte {
	c.t.Helper()
	for _, kind := range path {
		d, err := netlink.NewAttributeDecoder(b)
		if err != nil {
			c.t.Fatal(err)
		}
		b = nil
		for d.Next() {
			if d.Type() == kind {
				b = d.Bytes()
			}
		}
	}
	return b
}

// fill adds connections until the kernel takes no more, and has room for none before one that is
// established ends.
func (c *connTable) fill() {
	c.t.Helper()
	c.drop()
	for {
		bodies := make([][]byte, 100)
		for i := range bodies {
			bodies[i] = c.connection()
		}
		failed := c.request(ctNew, unix.AF_INET6, 0, bodies...)
		for _, err := range failed {
			if !errors.Is(err, unix.ENOMEM) {
				c.t.Fatalf("connection %d: %v", c.made, err)
			}
		}
		if failed != nil {
			return
		}
	}
}

// empty removes all connections over IPv6: those that fill has added.
func (c *connTable) empty() {
	c.t.Helper()
	if failed := c.request(ctDelete, unix.AF_INET6, 1, nil); failed != nil {
		c.t.Fatal(failed)
	}
}

// TestNATLabTableFull fills the zipper node's table of connections while two ranks exchange data
// over a direct link. The link goes on. Ranks that join get a clear error, unless the forwarder's
// port is exempted as docs/howto/direct-links.md says: then they join, and their pairs are relayed.
// Once there is room, they get direct links as well.
func TestNATLabTableFull(t *testing.T) {
	k := newKernelLab(t)
	b, table := k.b, openConnTable(t, k.name()+"-z1")
	exempt := func(in, out string) {
		k.on("z1", "nft", "add table inet exempt; add chain inet exempt in { type filter hook prerouting priority raw; }; "+
			"add chain inet exempt out { type filter hook output priority raw; }; "+
			"add rule inet exempt in tcp "+in+" notrack; add rule inet exempt out tcp "+out+" notrack")
	}
	exempt("dport 7487", "sport 7487") // this test asks for the forwarder's status
	exempt("sport 7487", "dport 7487") // on that node
	_, more, stop := k.stream(k.prog, k.job)
	k.awaitDirect(more)

	table.fill()
	before := k.relayed()
	more("the stream to go on while the table is full")
	doctor := b.Run(nil, k.env, "scripts/lab", "on", "z1", b.Zipper, "doctor")
	if !strings.Contains(doctor.Stdout, "ranks that join cannot reach a forwarder here") {
		t.Errorf("doctor does not warn of the full table: %v", doctor)
	}
	r := b.Run(nil, k.env, b.Zipper, "run", "--timeout", "10s", "--file", k.job, "--", k.prog, t.TempDir())
	if r.Status == 0 || !strings.Contains(r.Stderr, "is the node's table of connections full?") {
		t.Errorf("a job that cannot reach the forwarder: %v", r)
	}
	more("the stream to go on beside a job that fails")
	if now := k.relayed(); now != before || k.direct() != 1 {
		t.Errorf("%d bytes through the forwarder, %d direct links", now-before, k.direct())
	}

	exempt("dport 7486", "sport 7486")
	table.fill()
	_, more2, stop2 := k.stream(k.prog, k.job)
	before = k.relayed()
	more2("the second job to go on through the forwarder")
	if now := k.relayed(); now == before || k.direct() != 1 {
		t.Errorf("%d bytes through the forwarder, %d direct links", now-before, k.direct())
	}
	more("the stream to go on beside another job")
	table.empty()
	b.WaitFor(2*time.Minute, "the second job's direct link", func() bool { return k.direct() == 2 })
	more2("the second job to take the direct link")
	before = k.relayed()
	more("the first stream to go on")
	more2("the second stream to go on")
	if now := k.relayed(); now != before {
		t.Errorf("%d bytes through the forwarder beside the direct links", now-before)
	}
	stop()
	stop2()
}
