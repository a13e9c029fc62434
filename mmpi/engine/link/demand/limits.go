package demand

import "time"

const (
	// MaxLinks is the largest number of direct links that a process has on demand. Default 64. Each
	// takes 64 KiB, a descriptor and the kernel's memory for a socket. A process with more partners
	// uses the links for those with which it has exchanged most recently, and the forwarder for the
	// others.
	MaxLinks = 64

	// ClaimTime is how long a request, or an attempt to open a link, takes a place among MaxLinks,
	// in nanoseconds. Default 3 s: an attempt takes less. A request that is met later takes another
	// place then.
	ClaimTime = 3 * time.Second

	// frameWeight is the weight of a frame in addition to its length, in bytes. Default 8 KiB: 256
	// small messages, or 2 ms of a ping-pong, are enough for a direct link
	// (limits.DefaultDirectAfter).
	frameWeight = 8 << 10

	// maxPause is the longest pause between two requests, in nanoseconds. Default 1 min.
	maxPause = time.Minute

	// lasting is how long a link must last so that the pause begins again, in nanoseconds. Default
	// 10 s.
	lasting = 10 * time.Second

	// idleLong is the time without use after which a link may be closed to make room for another
	// one, in nanoseconds. Default 1 s: links in use are not closed for each other.
	idleLong = time.Second

	// idleLongest is the time without use after which a link is closed, in nanoseconds. Default 5
	// min: an unused link costs memory, and a ping every 2 s in both directions.
	idleLongest = 5 * time.Minute
)
