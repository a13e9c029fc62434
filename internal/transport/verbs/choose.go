package verbs

import (
	"fmt"
	"net/netip"
	"strings"

	"github.com/leidenzipper/zipper/internal/transport/addr"
)

// PortInfo describes one port of one device, as far as it is needed to choose one.
type PortInfo struct {
	Device     string
	Port       int
	Active     bool
	State      string // PORT_ACTIVE, PORT_DOWN …
	InfiniBand bool   // whether the link layer is InfiniBand; otherwise it is Ethernet (RoCE)
	Soft       bool   // whether it is soft-RoCE
	LID        uint16
	MTU        uint8 // active MTU, 1 to 5
	GIDs       []GIDInfo
	PKeys      []uint16 // partition key table
}

// GIDInfo is an entry of the port's GID table.
type GIDInfo struct {
	Index  int
	GID    [16]byte
	RoCEv2 bool
}

func (p PortInfo) String() string {
	kind := "RoCE"
	switch {
	case p.Soft:
		kind = "soft-RoCE"
	case p.InfiniBand:
		kind = fmt.Sprintf("InfiniBand, LID %d", p.LID)
	}
	for _, g := range p.GIDs {
		if p.InfiniBand || g.RoCEv2 {
			kind += ", GID " + netip.AddrFrom16(g.GID).String()
		}
	}
	return fmt.Sprintf("%s:%d (%s, %s)", p.Device, p.Port, kind, strings.TrimPrefix(p.State, "PORT_"))
}

// timeout returns the default of Options.Timeout for a link of this port.
func (p PortInfo) timeout() uint8 {
	if p.Soft {
		return softTimeout
	}
	return defaultTimeout
}

// Place is the local end of a link: a port with the entries of its tables.
type Place struct {
	PortInfo
	GID  GIDInfo
	PKey int // index in the table
	SL   uint8
}

// local describes this host's end of the TCP connection.
type local struct {
	ip netip.Addr
	// port is the GID in the hardware address of the IPoIB interface with this IP, or zero if it is
	// not IPoIB.
	port [16]byte
	pkey uint16 // partition key of the IPoIB interface; 0 if unknown
}

// choose returns the port that the address names or, if it names none, the port of the local IP
// address.
func choose(a addr.Verbs, l local, ports []PortInfo) (Place, error) {
	var known []string
	down := ""
	for _, p := range ports {
		known = append(known, p.String())
		if a.Device != "" && (p.Device != a.Device || a.Port != 0 && p.Port != a.Port) {
			continue
		}
		g, ok := p.find(a, l)
		if !ok {
			continue
		}
		if !p.Active {
			down = p.String()
			continue
		}
		k, err := p.partition(a, l)
		if err != nil {
			return Place{}, err
		}
		return Place{p, g, k, a.SL}, nil
	}
	switch {
	case len(ports) == 0:
		return Place{}, fmt.Errorf("this host has no RDMA device (ibv_devices lists them; is the adapter's driver loaded?)")
	case down != "":
		return Place{}, notActive(down)
	case a.Device != "":
		return Place{}, fmt.Errorf("no RDMA port fits device=%s; this host has %s",
			strings.TrimSuffix(fmt.Sprintf("%s:%d", a.Device, a.Port), ":0"), strings.Join(known, ", "))
	}
	return Place{}, fmt.Errorf("no RDMA port belongs to %s, this host's end of the TCP connection; this host has %s: use an address of the fabric's own IP network, or name the port with ?device=NAME:PORT", l.ip, strings.Join(known, ", "))
}

func notActive(port string) error {
	return fmt.Errorf("RDMA port %s is not active (cable, switch, or no subnet manager?)", port)
}

// find returns the GID to use, if the port matches at all.
func (p PortInfo) find(a addr.Verbs, l local) (GIDInfo, bool) {
	if a.GID >= 0 {
		for _, g := range p.GIDs {
			if g.Index == a.GID {
				return g, a.Device != "" || p.InfiniBand && g.GID == l.port || g.GID == l.ip.As16()
			}
		}
		return GIDInfo{}, false
	}
	if p.InfiniBand {
		for _, g := range p.GIDs {
			if a.Device != "" || g.GID == l.port {
				return g, true
			}
		}
		return GIDInfo{}, false
	}
	first := -1
	for i, g := range p.GIDs {
		if !g.RoCEv2 {
			continue
		}
		if g.GID == l.ip.As16() { // an IPv4 address is ::ffff:a.b.c.d in a GID
			return g, true
		}
		if first < 0 || netip.AddrFrom16(g.GID).Is4In6() && !netip.AddrFrom16(p.GIDs[first].GID).Is4In6() {
			first = i
		}
	}
	if a.Device != "" && first >= 0 {
		return p.GIDs[first], true
	}
	return GIDInfo{}, false
}

// partition returns the index of the partition key to use. The highest bit, full membership, does
// not distinguish keys.
func (p PortInfo) partition(a addr.Verbs, l local) (int, error) {
	want := a.PKey
	if want == 0 && p.InfiniBand && a.Device == "" {
		want = l.pkey
	}
	if want == 0 {
		return 0, nil
	}
	for i, k := range p.PKeys {
		if k&0x7fff == want&0x7fff && k&0x7fff != 0 {
			return i, nil
		}
	}
	return 0, fmt.Errorf("port %s:%d is not in the partition %#04x; the subnet manager gave it %#04x", p.Device,
		p.Port, want, p.PKeys)
}
