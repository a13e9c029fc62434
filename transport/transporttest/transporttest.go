// Package transporttest checks that a transport keeps the contract of transport.Link. Every transport runs it:
//
//	func TestConformance(t *testing.T) {
//		transporttest.Run(t, func(t *testing.T) (transport.Listener, transport.Dialer) { … })
//	}
package transporttest

import (
	"context"
	"testing"
	"time"

	"github.com/leidenzipper/zipper/transport"
)

// Patience bounds every wait; only a broken transport reaches it.
const Patience = 20 * time.Second

// maxBuffered is more than any transport may take before it says ErrAgain, in bytes.
const maxBuffered = 64 << 20

// Setup makes a listener at a fresh address and a dialer that reaches it.
type Setup func(t *testing.T) (transport.Listener, transport.Dialer)

// Run runs the whole suite.
func Run(t *testing.T, setup Setup) {
	for _, c := range []struct {
		name string
		test func(*testing.T, Setup)
	}{
		{"Exchange", exchange},
		{"Duplex", duplex},
		{"Nothing", nothing},
		{"Full", full},
		{"Vectored", vectored},
		{"WakeUp", wakeUp},
		{"EndOfStream", endOfStream},
		{"WriteAfterPeerClose", writeAfterPeerClose},
		{"AfterClose", afterClose},
		{"CloseWhileInUse", closeWhileInUse},
		{"ManyLinks", manyLinks},
		{"ListenerClose", listenerClose},
		{"DialNobody", dialNobody},
		{"DialCancelled", dialCancelled},
		{"Descriptors", descriptors},
		{"Allocations", allocations},
		{"Pieces", pieces},
		{"PiecesHeld", piecesHeld},
		{"Placed", placed},
	} {
		t.Run(c.name, func(t *testing.T) { c.test(t, setup) })
	}
}

// connect returns both ends of a new link.
func connect(t *testing.T, setup Setup) (dialed, accepted transport.Link) {
	t.Helper()
	ln, d := setup(t)
	dialed, accepted = open(t, ln, d)
	ln.Close()
	t.Cleanup(func() {
		dialed.Close()
		accepted.Close()
	})
	return dialed, accepted
}

func open(t *testing.T, ln transport.Listener, d transport.Dialer) (dialed, accepted transport.Link) {
	t.Helper()
	type result struct {
		l   transport.Link
		err error
	}
	got := make(chan result, 1)
	go func() {
		l, err := ln.Accept()
		got <- result{l, err}
	}()
	ctx, cancel := context.WithTimeout(context.Background(), Patience)
	defer cancel()
	dialed, err := d.Dial(ctx, ln.Addr())
	if err != nil {
		ln.Close()
		t.Fatalf("dial: %v", err)
	}
	r := <-got
	if r.err != nil {
		t.Fatalf("accept: %v", r.err)
	}
	return dialed, r.l
}
