package verbs

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/leidenzipper/zipper/internal/transport/addr"
)

func gid(s string) GIDInfo { return GIDInfo{GID: netip.MustParseAddr(s).As16()} }

func roce(i int, s string) GIDInfo { return GIDInfo{i, netip.MustParseAddr(s).As16(), true} }

// ports returns the ports of a host with an InfiniBand adapter of two ports and a RoCE one.
func ports() []PortInfo {
	return []PortInfo{
		{Device: "mlx5_0", Port: 1, Active: true, State: "PORT_ACTIVE", InfiniBand: true, LID: 7,
			GIDs: []GIDInfo{gid("fe80::1:1")}, PKeys: []uint16{0xffff, 0x8005}},
		{Device: "mlx5_0", Port: 2, State: "PORT_DOWN", InfiniBand: true, GIDs: []GIDInfo{gid("fe80::1:2")},
			PKeys: []uint16{0xffff}},
		{Device: "rxe0", Port: 1, Active: true, State: "PORT_ACTIVE",
			GIDs: []GIDInfo{{0, netip.MustParseAddr("fe80::2").As16(), true}, roce(1, "::ffff:10.1.0.1"),
				{2, netip.MustParseAddr("::ffff:10.1.0.1").As16(), false}}, PKeys: []uint16{0xffff}},
	}
}

func TestChoose(t *testing.T) {
	ipoib := local{ip: netip.MustParseAddr("10.9.0.1"), port: netip.MustParseAddr("fe80::1:1").As16(), pkey: 0x8005}
	down := local{ip: netip.MustParseAddr("10.9.1.1"), port: netip.MustParseAddr("fe80::1:2").As16()}
	eth := local{ip: netip.MustParseAddr("10.1.0.1")}
	other := local{ip: netip.MustParseAddr("192.168.1.1")}
	for _, c := range []struct {
		addr            string
		l               local
		want            string // device:port gid-index pkey-index, or words of the error
		port, gid, pkey int
	}{
		{"h:1", ipoib, "mlx5_0", 1, 0, 1},
		{"h:1?pkey=0x7fff", ipoib, "mlx5_0", 1, 0, 0},
		{"h:1?pkey=0x8006", ipoib, "error not in the partition 0x8006", 0, 0, 0},
		{"h:1", down, "error mlx5_0:2 (InfiniBand, LID 0, GID fe80::1:2, DOWN) is not active", 0, 0, 0},
		{"h:1", eth, "rxe0", 1, 1, 0},
		{"h:1?gid=2", eth, "rxe0", 1, 2, 0},
		{"h:1", other, "error no RDMA port belongs to 192.168.1.1", 0, 0, 0},
		{"h:1?device=rxe0", other, "rxe0", 1, 1, 0},
		{"h:1?device=rxe0:2", other, "error no RDMA port fits device=rxe0:2; this host has mlx5_0:1", 0, 0, 0},
		{"h:1?device=mlx5_0", other, "mlx5_0", 1, 0, 0},
		{"h:1?device=rxe0&gid=0", other, "rxe0", 1, 0, 0},
	} {
		a, err := addr.ParseVerbs(c.addr)
		if err != nil {
			t.Fatal(err)
		}
		p, err := choose(a, c.l, ports())
		if words, isError := strings.CutPrefix(c.want, "error "); isError {
			if err == nil || !strings.Contains(err.Error(), words) {
				t.Errorf("%s from %s: %v, want %q", c.addr, c.l.ip, err, words)
			}
			continue
		}
		if err != nil || p.Device != c.want || p.Port != c.port || p.GID.Index != c.gid || p.PKey != c.pkey {
			t.Errorf("%s from %s: %s:%d gid %d pkey %d, %v", c.addr, c.l.ip, p.Device, p.Port, p.GID.Index, p.PKey, err)
		}
	}
	if _, err := choose(addr.Verbs{GID: -1}, eth, nil); err == nil || !strings.Contains(err.Error(), "no RDMA device") {
		t.Errorf("without devices: %v", err)
	}
}

// TestSoftRoCEHasMoreTime checks that soft-RoCE has more time to answer, and is named.
func TestSoftRoCEHasMoreTime(t *testing.T) {
	p := PortInfo{Device: "rxe0", Port: 1, Soft: true}
	if n, hard := p.timeout(), (PortInfo{}).timeout(); n <= hard || hard == 0 {
		t.Errorf("%d; an adapter %d", n, hard)
	}
	if s := p.String(); !strings.Contains(s, "soft-RoCE") {
		t.Error(s)
	}
}
