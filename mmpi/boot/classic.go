package boot

import (
	"github.com/leidenzipper/zipper/internal/wire"
	"github.com/leidenzipper/zipper/mmpi/engine"
)

// classic sets the limits so that messages travel as in the original middleware, for comparison:
// every message is announced and waits to be cleared, and goes as one piece of at most MaxPayload
// at a time. The forwarder does the rest: one transfer at a time, stored whole. The window is as
// wide as may be, since a forwarder that stores gives nothing to the receiver before the end.
func classic(l *engine.Limits) {
	l.Eager = -1
	l.Segment = wire.MaxPayload
	l.DataWindow = wire.MaxWindow
}
