package dial

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/leidenzipper/zipper/internal/transport"
	"github.com/leidenzipper/zipper/internal/wire"
)

// HostKey asks the forwarder at an address for its host key (wire.FormatHostKey). It returns "" if
// the forwarder has none. The forwarder has not proven that it owns the key; a joining rank that is
// given the key demands the proof. If the forwarder cannot be reached HostKey retries until limit
// is over.
func HostKey(ctx context.Context, at string, limit time.Duration) (string, error) {
	td, target := pick(at, nil)
	l, err := connect(ctx, td, target, limit, func(error) {})
	if err != nil {
		return "", fmt.Errorf("forwarder %s: %w", at, err)
	}
	defer l.Close()
	c, err := challenge(ctx, l, limit)
	if err != nil {
		return "", fmt.Errorf("forwarder %s: %w", at, err)
	}
	return wire.FormatHostKey(c.HostKey), nil
}

// challenge reads the first frame of a link.
func challenge(ctx context.Context, l transport.Link, limit time.Duration) (wire.Challenge, error) {
	b, err := newBlocking(ctx, l, silence{limit, limit})
	if err != nil {
		return wire.Challenge{}, err
	}
	defer b.close()
	h, body, err := b.readFrame(wire.MaxJoin)
	if err != nil {
		return wire.Challenge{}, err
	}
	if h.Type != wire.TypeChallenge {
		return wire.Challenge{}, fmt.Errorf("answers with a %v frame (is that a Zipper forwarder?)", h.Type)
	}
	c, err := wire.ParseChallenge(body)
	if _, ok := c.Common(); err == nil && !ok {
		err = errors.New("speaks another version: install a release of Zipper that fits it (COMPATIBILITY.md)")
	}
	return c, err
}
