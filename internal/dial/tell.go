package dial

import (
	"context"
	"fmt"
	"time"

	"github.com/leidenzipper/zipper/handshake"
	"github.com/leidenzipper/zipper/internal/wire"
)

// Tell reports the state of a cluster's half of a job (handshake.Teller) to the forwarder at an
// address, and returns the forwarder's answer. If the forwarder cannot be reached Tell retries
// until limit is over, which bounds the whole call.
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
