package boot

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"slices"

	"github.com/leidenzipper/zipper/dial"
	"github.com/leidenzipper/zipper/jobenv"
	"github.com/leidenzipper/zipper/transport"
	"github.com/leidenzipper/zipper/transport/addr"
)

// reach is where this process opens direct links to. A Layout's doors are named by other processes
// and by the forwarder. A forwarder that is not honest could have ranks try ports inside their
// cluster, so only addresses are dialled that the job's user has named: those of the forwarders, as
// this process dials them, and those of ZIPPER_DIRECT_ALLOW.
type reach struct {
	addresses []netip.Addr
	networks  []netip.Prefix
}

// reachOf returns the reach of a process with these links to its job's forwarders (nil: not there
// yet). Names that are not found are left out.
func reachOf(ctx context.Context, allow jobenv.DirectAllow, targets []dial.Target, links []transport.Link) *reach {
	r := &reach{networks: allow.Networks}
	for _, l := range links {
		if home, ok := l.(transport.Homed); ok {
			_, there := home.Home()
			r.addresses = append(r.addresses, plainAddr(there))
		}
	}
	hosts := slices.Clone(allow.Hosts)
	for _, t := range targets {
		if h := hostOf(t.Address); h != "" {
			hosts = append(hosts, h)
		}
	}
	for _, h := range hosts {
		found, _ := net.DefaultResolver.LookupNetIP(ctx, "ip", h)
		for _, a := range found {
			r.addresses = append(r.addresses, plainAddr(a))
		}
	}
	return r
}

// hostOf returns the host of a forwarder's address; empty: it has none.
func hostOf(at string) string {
	switch kind, target := addr.Split(at); kind {
	case addr.KindVerbs:
		if v, err := addr.ParseVerbs(at); err == nil {
			at = v.Host
		}
	case addr.KindMemory:
		return ""
	default:
		at = target
	}
	host, _, err := net.SplitHostPort(at)
	if err != nil {
		return ""
	}
	return host
}

func plainAddr(a netip.Addr) netip.Addr { return a.Unmap().WithZone("") }

// check returns why a rank's door is not dialled; nil: it is.
func (r *reach) check(rank int, door string) error {
	at, err := netip.ParseAddrPort(door)
	if err != nil {
		return notAllowed{rank, door}
	}
	a := plainAddr(at.Addr())
	within := func(p netip.Prefix) bool { return p.Contains(a) }
	if slices.Contains(r.addresses, a) || slices.ContainsFunc(r.networks, within) {
		return nil
	}
	return notAllowed{rank, door}
}

// notAllowed is why a door is not dialled.
type notAllowed struct {
	rank int
	door string
}

func (n notAllowed) Error() string {
	return fmt.Sprintf("the forwarder says that rank %d takes direct links at %.60q, which is not dialled because it is "+
		"no address of the job's forwarder: if it is right, allow it with %s", n.rank, n.door, jobenv.VarDirectAllow)
}

// Permanent says that trying again does not help.
func (notAllowed) Permanent() bool { return true }
