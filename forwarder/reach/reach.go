// Package reach bounds the addresses that a forwarder dials. Jobs of several hops name the
// addresses of other forwarders, and strangers can make jobs: without a bound they could explore
// the forwarder's networks.
package reach

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"slices"
	"time"

	"github.com/leidenzipper/zipper/internal/transport"
	"github.com/leidenzipper/zipper/internal/transport/addr"
)

// ErrNotAllowed is the error for an address that may not be dialled. It does not reveal whether the
// address or the name exists.
var ErrNotAllowed = errors.New("this forwarder's configuration does not permit that address")

// Private has the private networks of RFC 1918 and RFC 4193.
var Private = []netip.Prefix{
	netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("172.16.0.0/12"),
	netip.MustParsePrefix("192.168.0.0/16"), netip.MustParsePrefix("fc00::/7"),
}

// Loopback has this host's own addresses.
var Loopback = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("::1/128")}

// Dial opens a link to the address at. It retries until ctx ends, and calls failed with the error
// of each attempt.
type Dial = func(ctx context.Context, at string, failed func(error)) (transport.Link, error)

// Only returns a Dial that dials only addresses on the allowed networks. It dials the first allowed
// address of a name; for verbs it accepts no names. It is safe for concurrent use if dial is.
func Only(allowed []netip.Prefix, dial Dial) Dial {
	return only(allowed, dial, net.DefaultResolver.LookupNetIP)
}

// Pauses after a failed lookup: the first one, and the longest.
const (
	firstPause = 100 * time.Millisecond
	maxPause   = 2 * time.Second
)

// lookup returns the addresses of a host.
type lookup func(ctx context.Context, network, host string) ([]netip.Addr, error)

// patiently looks a host up. It repeats that until ctx ends if the resolver cannot answer.
func (find lookup) patiently(ctx context.Context, host string, failed func(error)) ([]netip.Addr, error) {
	for pause := firstPause; ; pause = min(2*pause, maxPause) {
		there, err := find(ctx, "ip", host)
		var dns *net.DNSError
		if !errors.As(err, &dns) || dns.IsNotFound {
			return there, err
		}
		failed(err)
		select {
		case <-ctx.Done():
			return nil, err
		case <-time.After(pause):
		}
	}
}

func only(allowed []netip.Prefix, dial Dial, find lookup) Dial {
	permits := func(a netip.Addr) bool {
		return slices.ContainsFunc(allowed, func(p netip.Prefix) bool { return p.Contains(a.Unmap().WithZone("")) })
	}
	return func(ctx context.Context, at string, failed func(error)) (transport.Link, error) {
		switch kind, _ := addr.Split(at); kind {
		case addr.KindVerbs:
			v, err := addr.ParseVerbs(at)
			if err != nil {
				return nil, ErrNotAllowed
			}
			if a, err := netip.ParseAddrPort(v.Host); err != nil || !permits(a.Addr()) {
				return nil, ErrNotAllowed
			}
			return dial(ctx, at, failed)
		case addr.KindTCP:
			host, port, err := net.SplitHostPort(at)
			if err != nil {
				return nil, ErrNotAllowed
			}
			there, err := find.patiently(ctx, host, failed)
			if err != nil && ctx.Err() != nil {
				return nil, err
			}
			for _, a := range there {
				if permits(a) {
					return dial(ctx, net.JoinHostPort(a.Unmap().String(), port), failed)
				}
			}
		}
		return nil, ErrNotAllowed
	}
}
