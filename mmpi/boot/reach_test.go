package boot

import (
	"net"
	"net/netip"
	"strings"
	"testing"

	"github.com/leidenzipper/zipper/handshake/handshaketest"
	"github.com/leidenzipper/zipper/internal/dial"
	"github.com/leidenzipper/zipper/internal/jobenv"
	"github.com/leidenzipper/zipper/internal/transport"
	"github.com/leidenzipper/zipper/internal/wire"
)

// homed is a link whose other end has an address.
type homed struct {
	transport.Link
	there string
}

func (h homed) Home() (here, there netip.Addr) { return netip.Addr{}, netip.MustParseAddr(h.there) }

// TestReach checks that ranks are dialled at the forwarders' addresses, except loopback ones, and
// at those that the user allows.
func TestReach(t *testing.T) {
	allow, err := jobenv.ParseDirectAllow("192.0.2.7,198.51.100.0/24+2001:db8::/32,no-such-host.invalid,127.0.0.4")
	if err != nil {
		t.Fatal(err)
	}
	targets := []dial.Target{{Address: "203.0.113.1:7475"}, {Address: "verbs:203.0.113.2:7475?connect=cm"}, {Address: "unix:/x"},
		{Address: "localhost:7475"}}
	r := reachOf(t.Context(), allow, targets, []transport.Link{homed{there: "::ffff:203.0.113.3"},
		homed{there: "::ffff:127.0.0.3"}, nil})
	for door, want := range map[string]bool{
		"203.0.113.1:40000": true, "203.0.113.2:1": true, "203.0.113.3:22": true, "[::ffff:203.0.113.3]:22": true,
		"192.0.2.7:5": true, "198.51.100.200:5": true, "[2001:db8::1]:5": true,
		"203.0.113.4:5": false, "192.0.2.8:5": false, "127.0.0.1:5": false, "127.0.0.3:5": false,
		"127.0.0.4:5": true, "127.0.0.2:5": false, "[::1]:5": false, "[2001:db9::1]:5": false,
		"localhost:5": false, "unix:/run/x": false, "verbs:203.0.113.1:5": false, "203.0.113.1": false, "": false,
	} {
		if err := r.check(2, door); (err == nil) != want {
			t.Errorf("%q: %v, want dialled: %v", door, err, want)
		}
	}
}

// TestDoorElsewhereIsNotDialled checks that an address of no forwarder is not dialled, and that the
// error says what to do.
func TestDoorElsewhereIsNotDialled(t *testing.T) {
	probe, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer probe.Close()
	layout := wire.Layout{Rank: 0, Clusters: []wire.Cluster{{Name: "a", Size: 1}, {Name: "b", Size: 1}},
		Doors: []wire.Door{{Rank: 1, Port: wire.Port{Network: 0, Address: probe.Addr().String()}}}}
	within := reachOf(t.Context(), jobenv.DirectAllow{}, []dial.Target{{Address: "192.0.2.1:7475"}}, nil)
	_, err = openers(&identityForTest, &layout, within)[1](t.Context())
	if err == nil || !strings.Contains(err.Error(), "rank 1") || !strings.Contains(err.Error(), jobenv.VarDirectAllow) {
		t.Errorf("error %v", err)
	}
	handshaketest.NotDialled(t, probe)
}

// TestNoListenerAtLoopback checks that a rank that has joined over the loopback interface listens
// for no connections that a forwarder's kernel passes on, because no rank dials such an address,
// unless that is allowed.
func TestNoListenerAtLoopback(t *testing.T) {
	here := netip.MustParseAddr("127.0.0.1")
	for allow, listens := range map[string]bool{"": false, "127.0.0.2": false, "127.0.0.1": true, "127.0.0.0/8": true} {
		d, err := jobenv.ParseDirectAllow(allow)
		if err != nil {
			t.Fatal(err)
		}
		ln := &listener{}
		if at := ln.listenInside(here, &d); (at != "") != listens {
			t.Errorf("with %q it listens at %q", allow, at)
		}
		ln.close()
	}
}
