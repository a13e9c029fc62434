package nat

import (
	"errors"
	"fmt"
	"net/netip"

	"github.com/leidenzipper/zipper/internal/transport"
)

// Inside parses the address at which a rank claims to accept connections. It returns that address,
// and the addresses of this host and of the other one on the rank's link; each is invalid if
// unknown. It returns an error if the address is not an IP address and port, is on another host
// than the rank, or has a port of a system's service, or if the link is not over an IP network.
func Inside(claimed string, link transport.Link) (at netip.AddrPort, here, there netip.Addr, err error) {
	home, ok := link.(transport.Homed)
	if ok {
		here, there = home.Home()
	}
	if claimed == "" {
		return at, here, there, nil
	}
	a, err := netip.ParseAddrPort(claimed)
	switch {
	case err != nil:
	case !ok:
		err = errors.New("the link is not one over TCP")
	case a.Addr().Zone() != "" || a.Addr().Is4In6() || a.Addr().IsLinkLocalUnicast():
		err = errors.New("the address is link-local, or is not in its shortest form")
	case a.Port() < lowestPort:
		err = fmt.Errorf("ports below %d are not for ranks", lowestPort)
	case there != a.Addr():
		err = fmt.Errorf("its link comes from %v", there)
	default:
		at = a
	}
	return at, here, there, err
}
