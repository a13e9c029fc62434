package reach

import (
	"context"
	"errors"
	"net/netip"
	"testing"

	"github.com/leidenzipper/zipper/internal/transport"
)

// TestDisallowedAddressIsNotDialled checks that no address outside the allowed networks is dialled,
// under any name.
func TestDisallowedAddressIsNotDialled(t *testing.T) {
	errDialled := errors.New("dialled")
	var last string
	dial := Only(append([]netip.Prefix{netip.MustParsePrefix("192.0.2.0/24")}, Private...),
		func(_ context.Context, at string, _ func(error)) (transport.Link, error) {
			last = at
			return nil, errDialled
		})
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
