// Package forwardertest runs forwarders inside the tests of other packages.
package forwardertest

import (
	"context"
	"testing"

	"github.com/leidenzipper/zipper/forwarder"
	"github.com/leidenzipper/zipper/internal/transport"
	"github.com/leidenzipper/zipper/internal/transport/tcp"
)

// Serve runs a forwarder until the test ends, and fails the test if the forwarder fails. Without a
// listener it listens on loopback. The address is that of the first listener. It must be called by
// the test's own goroutine.
func Serve(t testing.TB, cfg forwarder.Config) (f *forwarder.Forwarder, addr string) {
	t.Helper()
	if len(cfg.Listeners) == 0 {
		ln, err := tcp.Listen("127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		cfg.Listeners = []transport.Listener{ln}
	}
	f, err := forwarder.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- f.Serve(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
	return f, cfg.Listeners[0].Addr()
}
