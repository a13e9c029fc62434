// Package transporttest checks that a transport keeps the contract of transport.Link. Every
// transport runs it:
//
//	func TestConformance(t *testing.T) {
//	\ttransporttest.Run(t, transporttest.Setup{Open: …, Can: transporttest.Listening})
//	}
package transporttest

import (
	"testing"
	"time"

	"github.com/leidenzipper/zipper/internal/transport"
	"github.com/leidenzipper/zipper/internal/transport/splice"
)

// Patience bounds every wait; only a broken transport reaches it.
const Patience = 20 * time.Second

// maxBuffered is larger than the number of bytes that any transport may take before ErrAgain.
const maxBuffered = 64 << 20

// Setup describes how links of a transport are opened, and their capabilities.
type Setup struct {
	// Open opens a listener at a fresh address and a dialer that reaches it.
	Open func(t *testing.T) (transport.Listener, transport.Dialer)
	// Can has all capabilities of links beyond transport.Link. The suite fails if links have fewer
	// or more.
	Can Capability
	// Allocates is the reason why moving bytes allocates memory; empty if it does not.
	Allocates string
	// Skip skips a test, by its name, that the machine does not permit. It may be nil.
	Skip func(t *testing.T, test string)
}

// Capability is a set of optional interfaces of package transport.
type Capability uint

// These are the capabilities, by their interfaces.
const (
	Listening Capability = 1 << iota
	Packeted
	Homed
	Distant
	Carried
	Lender
	Placer
	Piper
)

var capabilities = []struct {
	c    Capability
	name string
	has  func(transport.Link) bool
}{
	{Listening, "Listening", is[transport.Listening]},
	{Packeted, "Packeted", is[transport.Packeted]},
	{Homed, "Homed", is[transport.Homed]},
	{Distant, "Distant", is[transport.Distant]},
	{Carried, "Carried", is[transport.Carried]},
	{Lender, "Lender", is[transport.Lender]},
	{Placer, "Placer", is[transport.Placer]},
	{Piper, "Piper", is[splice.Link]},
}

func is[T transport.Link](l transport.Link) bool { _, ok := l.(T); return ok }

// Run runs the whole suite. Tests of capabilities that links do not have are skipped, with a
// message.
func Run(t *testing.T, setup Setup) {
	for _, c := range []struct {
		name  string
		needs Capability
		test  func(*testing.T, Setup)
	}{
		{"Declared", 0, declared},
		{"Exchange", 0, exchange},
		{"Duplex", 0, duplex},
		{"Nothing", 0, nothing},
		{"Full", 0, full},
		{"Vectored", 0, vectored},
		{"WakeUp", 0, wakeUp},
		{"EndOfStream", 0, endOfStream},
		{"WriteAfterPeerClose", 0, writeAfterPeerClose},
		{"AfterClose", 0, afterClose},
		{"CloseWhileInUse", 0, closeWhileInUse},
		{"ManyLinks", 0, manyLinks},
		{"ListenerClose", 0, listenerClose},
		{"DialNobody", 0, dialNobody},
		{"DialCancelled", 0, dialCancelled},
		{"Descriptors", 0, descriptors},
		{"Allocations", 0, allocations},
		{"Unheard", Listening, unheard},
		{"Packet", Packeted, packet},
		{"Home", Homed, home},
		{"Path", Distant, path},
		{"Pieces", Lender, pieces},
		{"PiecesHeld", Lender, piecesHeld},
		{"Placed", Placer, placed},
		{"Piped", Piper, piped},
	} {
		t.Run(c.name, func(t *testing.T) {
			for _, k := range capabilities {
				if c.needs&k.c != 0 && setup.Can&k.c == 0 {
					t.Skipf("links of this transport are no transport.%s", k.name)
				}
			}
			if setup.Skip != nil {
				setup.Skip(t, c.name)
			}
			c.test(t, setup)
		})
	}
}

// declared checks that links have the declared capabilities, and no others, at both ends.
func declared(t *testing.T, setup Setup) {
	a, b := connect(t, setup)
	for _, k := range capabilities {
		want := setup.Can&k.c != 0
		if k.has(a) != want || k.has(b) != want {
			t.Errorf("transport.%s: declared %v, the end that dialled %v, the other %v", k.name, want, k.has(a),
				k.has(b))
		}
	}
}
