//go:build !rdma || !cgo

package verbs

import (
	"context"
	"errors"

	"github.com/leidenzipper/zipper/internal/transport"
)

// ErrNotBuilt is the error of a program that was built without rdma-core.
var ErrNotBuilt error = permanent{errors.New("this build of zipper has no verbs transport: install rdma-core's development files (apt-get install libibverbs-dev librdmacm-dev) and build again with scripts/build, which adds -tags rdma")}

// Dialer opens links to "HOST:PORT" or "verbs:HOST:PORT" addresses.
type Dialer struct{ Options Options }

var _ transport.Dialer = Dialer{}

// Dial fails with ErrNotBuilt.
func (Dialer) Dial(context.Context, string) (transport.Link, error) { return nil, ErrNotBuilt }

// Listener stands for the listener of the real transport.
type Listener struct{}

var _ transport.Listener = (*Listener)(nil)

// Listen fails with ErrNotBuilt.
func Listen(string, Options) (*Listener, error) { return nil, ErrNotBuilt }

// Accept fails with ErrNotBuilt.
func (*Listener) Accept() (transport.Link, error) { return nil, ErrNotBuilt }

// Addr returns "".
func (*Listener) Addr() string { return "" }

// Close does nothing.
func (*Listener) Close() error { return nil }

// Survey fails with ErrNotBuilt.
func Survey() ([]PortInfo, error) { return nil, ErrNotBuilt }
