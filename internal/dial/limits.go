package dial

import (
	"time"

	"github.com/leidenzipper/zipper/internal/wire"
)

// These are times of connecting to a forwarder. None of them is on the path of a message.
const (
	// firstPause and maxPause bound the pause between attempts to connect, which doubles. It starts
	// short, so that the pieces of a job may start in any order without a noticeable delay, and
	// never gets so long that a user waits for it.
	firstPause = 20 * time.Millisecond
	maxPause   = 500 * time.Millisecond

	// fullPause is the pause between attempts of a process that is at its limit of descriptors.
	fullPause = 100 * time.Millisecond

	// tellAfter is the default of Dialer.Patience: longer than a forwarder takes to start, but
	// short enough to answer a user's doubts.
	tellAfter = 2 * time.Second

	// maxSilence is the default of Dialer.Silence: as long as a forwarder waits for a process that
	// is stopped.
	maxSilence = time.Minute

	// refusal is the time limit for the forwarder's message that other ranks have not joined in
	// time.
	refusal = 10 * time.Second

	// openTime is the time limit of Open if its context has no end.
	openTime = time.Minute
)

// meetLength is the length of the longest frame of a meeting in bytes, without its header: that of
// a Refuse with its text.
const meetLength = 100 + wire.MaxString
