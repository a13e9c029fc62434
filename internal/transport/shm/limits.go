package shm

import "time"

const (
	// DefaultSize is the room of each direction's ring in bytes, 1 MiB: several segments of the
	// engine's fit, so writer and reader seldom wait for each other. A link takes twice that of
	// shared memory.
	DefaultSize = 1 << 20

	// minSize and maxSize bound what a ring may have, whoever asks: a page, and 256 MiB.
	minSize = 4 << 10
	maxSize = 1 << 28

	// handOver is how long the listener waits for a dialer to take the descriptors: they fit into
	// the socket's buffer, so only one that breaks the rules needs any time. Meanwhile nobody else
	// is served.
	handOver = 5 * time.Second
)

// fits reports whether a ring may have so many bytes.
func fits(size uint64) bool { return size >= minSize && size <= maxSize && size&(size-1) == 0 }
