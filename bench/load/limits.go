package load

import "time"

// keep is the number of latencies that a link remembers, and mostSamples the number from all links
// for a percentile: more take memory, and time to sort, but allow higher percentiles.
const (
	keep        = 1024
	mostSamples = 1 << 20
)

// flood is the number of bytes that the slow receiver's peer sends before its credit would be
// spent, and floodSegment the payload of one of its frames in bytes.
const (
	flood        = 4 << 20
	floodSegment = 64 << 10
)

// linkBuffer is the size of each link's buffer in either direction, in bytes: there are thousands
// of links.
const linkBuffer = 4 << 10

// fewOthers is the largest number of descriptors that a process has open beside its links.
const fewOthers = 64

// atOnce is the number of links that connect or join at a time, and joinTime how long they wait for
// the others.
const (
	atOnce   = 128
	joinTime = 5 * time.Minute
)

// patience is how long after its time a phase may end, and how long leaving may take.
const patience = time.Minute
