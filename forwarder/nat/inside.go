package nat

import (
	"errors"
	"fmt"
	"net/netip"

	"github.com/leidenzipper/zipper/internal/transport"
)

// Inside checks where a rank says that it takes connections, and returns that, and this host's
// address on the rank's link; invalid: nowhere, or unknown. Nobody opens a way to another host than
// the one that the rank is on, nor to a system's service.
func Inside(said string, link transport.Link) (at netip.AddrPort, here netip.Addr, err error) {
	var there netip.Addr
	home, ok := link.(transport.Homed)
	if ok {
		here, there = home.Home()
	}
	if said == "" {
		return at, here, nil
	}
	a, err := netip.ParseAddrPort(said)
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
