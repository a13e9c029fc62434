package reach

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"testing"

	"github.com/leidenzipper/zipper/internal/transport"
)

// names looks hosts up without a name server: it knows localhost, and addresses.
func names(_ context.Context, _, host string) ([]netip.Addr, error) {
	if host == "localhost" {
		host = "127.0.0.1"
	}
	a, err := netip.ParseAddr(host)
	if err != nil {
		return nil, &net.DNSError{Err: "no such host", Name: host, IsNotFound: true}
	}
	return []netip.Addr{a}, nil
}

// TestLookupIsRepeated checks that a name server which cannot answer at first delays the dialling,
// that the wait ends with its context, and that a name that does not exist is refused at once.
func TestLookupIsRepeated(t *testing.T) {
	errDialled := errors.New("dialled")
	dead := &net.DNSError{Err: "server misbehaving", IsTemporary: true}
	answers := 0 // the number of failures before the answer
	dial := only(Private, func(context.Context, string, func(error)) (transport.Link, error) { return nil, errDialled },
		func(ctx context.Context, network, host string) ([]netip.Addr, error) {
			if answers--; answers >= 0 {
				return nil, dead
			}
			return names(ctx, network, host)
		})
	ctx, cancel := context.WithCancel(context.Background())
	failures := 0
	failed := func(error) { failures++ }
	answers = 2
	if _, err := dial(ctx, "10.1.2.3:7475", failed); err != errDialled || failures != 2 {
		t.Errorf("%v after %d failures", err, failures)
	}
	if _, err := dial(ctx, "no.such.name:1", failed); err != ErrNotAllowed || failures != 2 {
		t.Errorf("%v after %d failures", err, failures)
	}
	cancel()
	answers = 1 << 30
	if _, err := dial(ctx, "10.1.2.3:7475", failed); !errors.Is(err, dead) {
		t.Errorf("%v without a name server", err)
	}
}

// TestDisallowedAddressIsNotDialled checks that no address outside the allowed networks is dialled,
// under any name.
func TestDisallowedAddressIsNotDialled(t *testing.T) {
	errDialled := errors.New("dialled")
	var last string
	dial := only(append([]netip.Prefix{netip.MustParsePrefix("192.0.2.0/24")}, Private...),
		func(_ context.Context, at string, _ func(error)) (transport.Link, error) {
			last = at
			return nil, errDialled
		}, names)
	for at, want := range map[string]string{
		"10.1.2.3:7475": "10.1.2.3:7475", "192.0.2.9:1": "192.0.2.9:1", "[fd00::1]:2": "[fd00::1]:2",
		"[::ffff:10.1.2.3]:4": "10.1.2.3:4", "verbs:10.1.2.3:7475": "verbs:10.1.2.3:7475",
		"127.0.0.1:7476": "", "localhost:7476": "", "169.254.169.254:80": "", "198.51.100.1:22": "", "[::1]:1": "",
		"0.0.0.0:1": "", "[::]:1": "", "[::ffff:127.0.0.1]:1": "", "unix:/run/x": "", "verbs:127.0.0.1:1": "",
		"verbs:localhost:1": "", "nonsense": "", "": "", "no.such.name.invalid:1": "",
	} {
		last = ""
		_, err := dial(context.Background(), at, nil)
		if last != want || want == "" && err != ErrNotAllowed {
			t.Errorf("%s: dialled %q, %v", at, last, err)
		}
	}
}
