package dial

import (
	"time"

	"github.com/leidenzipper/zipper/internal/wire"
)

// Times of reaching a forwarder. None of them is on a message's way.
const (
	// firstPause and maxPause bound the pause between attempts to connect, which doubles: short, so
	// that the pieces of a job may start in any order and nobody notices, and never so long that a
	// user waits for it.
	firstPause = 20 * time.Millisecond
	maxPause   = 500 * time.Millisecond

	// fullPause is between attempts of a process that is at its limit of descriptors.
	fullPause = 100 * time.Millisecond

	// tellAfter is Dialer.Patience by default: longer than a forwarder takes to start, shorter than
	// a user needs to doubt.
	tellAfter = 2 * time.Second

	// maxSilence is Dialer.Silence by default: as long as a forwarder waits for a process that is
	// stopped.
	maxSilence = time.Minute

	// refusal is how long the forwarder's word may take that the others have not come in time.
	refusal = 10 * time.Second

	// openTime is how long Open tries where its context has no end.
	openTime = time.Minute
)

// meetLength is the longest frame of a meeting in bytes, without its header: a Refuse with its text
// is.
const meetLength = 100 + wire.MaxString
