package boot

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"slices"

	"github.com/leidenzipper/zipper/internal/dial"
	"github.com/leidenzipper/zipper/internal/jobenv"
	"github.com/leidenzipper/zipper/internal/transport"
	"github.com/leidenzipper/zipper/internal/transport/addr"
)

// reach has the addresses to which this process opens direct links. Other processes and the
// forwarder supply the addresses of a Layout. A dishonest forwarder could make ranks probe ports
// inside their cluster, so only addresses are dialled that the job's user has named: those of the
// forwarders, as this process dials them, and those of ZIPPER_DIRECT_ALLOW. A forwarder's loopback
// address may be one end of a tunnel, and its other ports are this host's own, so it must be named
// in the latter.
type reach struct {
	addresses []netip.Addr
	networks  []netip.Prefix
}

// reachOf returns the reach of a process with these links to its job's forwarders (nil if not there
// yet). Names that are not found are left out.
func reachOf(ctx context.Context, allow jobenv.DirectAllow, targets []dial.Target, links []transport.Link) *reach {
	r := &reach{networks: allow.Networks}
	for _, l := range links {
		if home, ok := l.(transport.Homed); ok {
			_, there := home.Home()
			r.addresses = append(r.addresses, plainAddr(there))
		}
	}
	for _, t := range targets {
		if h := hostOf(t.Address); h != "" {
			r.addresses = append(r.addresses, resolve(ctx, h)...)
		}
	}
	r.addresses = slices.DeleteFunc(r.addresses, netip.Addr.IsLoopback)
	for _, h := range allow.Hosts {
		r.addresses = append(r.addresses, resolve(ctx, h)...)
	}
	return r
}

// resolve returns the addresses of a host, or none if it is not found.
func resolve(ctx context.Context, host string) (found []netip.Addr) {
	found, _ = net.DefaultResolver.LookupNetIP(ctx, "ip", host)
	for i, a := range found {
		found[i] = plainAddr(a)
	}
	return found
}

// hostOf returns the host of a forwarder's address, or "" if it has none.
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

// check returns the reason for which a rank's address is not dialled, or nil if it is.
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

// notAllowed is the error for an address that is not dialled.
type notAllowed struct {
	rank int
	door string
}

func (n notAllowed) Error() string {
	return fmt.Sprintf("the forwarder says that rank %d takes direct links at %.60q, which is not dialled because it is "+
		"no address of the job's forwarder (loopback addresses do not count): if it is right, allow it with %s",
		n.rank, n.door, jobenv.VarDirectAllow)
}

// Permanent returns true: a retry does not help.
func (notAllowed) Permanent() bool { return true }
