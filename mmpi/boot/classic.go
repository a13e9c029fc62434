package boot

import (
	"github.com/leidenzipper/zipper/internal/wire"
	"github.com/leidenzipper/zipper/mmpi/engine"
)

// classic sets the limits so that messages are sent as in the original middleware, for comparison.
// Every message is announced and waits for the go-ahead, and is sent in pieces of at most
// MaxPayload, one at a time. The forwarder does the rest: one transfer at a time, stored
// completely. The window is as large as possible, because a forwarder that stores messages passes
// nothing on to the receiver before the end.
func classic(l *engine.Limits) {
	l.Eager = -1
	l.Segment = wire.MaxPayload
	l.DataWindow = wire.MaxWindow
}
