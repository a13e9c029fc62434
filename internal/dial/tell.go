package dial

import (
	"context"
	"fmt"
	"time"

	"github.com/leidenzipper/zipper/handshake"
	"github.com/leidenzipper/zipper/internal/wire"
)

// Tell tells the forwarder at an address how a cluster's half of a job stands (handshake.Teller),
// and returns what it says came of it. limit bounds all of it; a forwarder that is not there is
// tried again until then.
func Tell(ctx context.Context, at string, half wire.Half, secret string, limit time.Duration) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	m, err := handshake.NewTeller(half, secret)
	if err != nil {
		return "", err
	}
	td, target := pick(at, nil)
	l, err := connect(ctx, td, target, limit, func(error) {})
	if err != nil {
		return "", fmt.Errorf("forwarder %s: %w", at, err)
	}
	defer l.Close()
	e, err := run(ctx, l, m, wire.MaxJoin, silence{limit, limit}, nil)
	if err != nil {
		return "", fmt.Errorf("forwarder %s: %w", at, err)
	}
	return e.Text, nil
}
