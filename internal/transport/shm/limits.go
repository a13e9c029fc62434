package shm

import "time"

const (
	// DefaultSize is the size of each direction's ring in bytes, 1 MiB. Several segments of the
	// engine fit, so writer and reader seldom wait for each other. A link uses twice that of shared
	// memory.
	DefaultSize = 1 << 20

	// minSize and maxSize bound the size of any ring: a page, and 256 MiB.
	minSize = 4 << 10
	maxSize = 1 << 28

	// handOver is the time for which the listener waits for a dialer to take the descriptors. They
	// fit into the socket's buffer, so only a faulty dialer needs any time. Meanwhile no other
	// dialer is served.
	handOver = 5 * time.Second
)

// fits reports whether size is a valid size of a ring.
func fits(size uint64) bool { return size >= minSize && size <= maxSize && size&(size-1) == 0 }
