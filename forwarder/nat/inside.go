package nat

import (
	"errors"
	"fmt"
	"net/netip"

	"github.com/leidenzipper/zipper/internal/transport"
)

// Inside parses the address at which a rank claims to accept connections. It returns that address,
// and this host's address on the rank's link; each is invalid if unknown. It returns an error if
// the address is not an IPv4 address and port, is on another host than the rank, or has a port of a
// system's service, or if the link is not over an IP network.
func Inside(claimed string, link transport.Link) (at netip.AddrPort, here netip.Addr, err error) {
	var there netip.Addr
	home, ok := link.(transport.Homed)
	if ok {
		here, there = home.Home()
	}
	if claimed == "" {
		return at, here, nil
	}
	a, err := netip.ParseAddrPort(claimed)
	switch {
	case err != nil:
		return at, here, err
	case !ok:
		return at, here, errors.New("the link is not one over TCP")
	case !a.Addr().Is4():
		return at, here, errors.New("only IPv4 is passed on")
	case a.Port() < lowestPort:
		return at, here, fmt.Errorf("ports below %d are not for ranks", lowestPort)
	case there != a.Addr():
		return at, here, fmt.Errorf("its link comes from %v", there)
	}
	return a, here, nil
}
