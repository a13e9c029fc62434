package load

import "time"

// keep is how many latencies a link remembers, and mostSamples how many all together give to a
// percentile: memory and the time to sort them, against how far out a percentile can be read.
const (
	keep        = 1024
	mostSamples = 1 << 20
)

// flood is what the slow receiver's peer sends before its credit would be spent, and floodSegment
// the payload of one of its frames, bytes.
const (
	flood        = 4 << 20
	floodSegment = 64 << 10
)

// linkBuffer is each link's in either direction, bytes: there are thousands of links.
const linkBuffer = 4 << 10

// fewOthers is how many descriptors a process has open beside its links, at most.
const fewOthers = 64

// atOnce is how many links connect or say who they are at a time, and joinTime how long they wait
// for the others.
const (
	atOnce   = 128
	joinTime = 5 * time.Minute
)

// patience is how long after its time a phase may end, and how long leaving may take.
const patience = time.Minute
