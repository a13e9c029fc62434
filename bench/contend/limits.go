package contend

import "time"

// Near is the error up to which a transfer counts as predicted well.
const Near = 0.10

// What says that processors, not the network, were measured, in parts of the processor time. From
// Busy on, used or stolen, a measurement may have waited for processors: it is named. From
// Disturbed on, stolen by a hypervisor, a pattern is measured again, Attempts times at most: the
// run takes longer, and its result says nothing of other guests of the machine.
const (
	Busy      = 0.5
	Disturbed = 0.25
	Attempts  = 3
)

// latencySamples is of how many small messages a latency is the median: odd.
const latencySamples = 9

// window is what a connection in the lab has on its way at most, in bytes: fixed, and smaller than
// the queues, so that nothing is lost and what is measured is the sharing of links. A sender's
// buffer of send bytes holds that and what it has not sent, with what the system needs beside; a
// receiver's buffer does not matter.
const (
	window  = 256 << 10
	send    = 448 << 10
	receive = 8 << 20
)

// A packet in the lab, and what a limited link lets pass at once after a pause: bytes.
const (
	packet = 9000
	burst  = 16 << 10
)

// A forwarder that is to be the bottleneck has quotaTime of a processor in each quotaPeriod, both
// in microseconds.
const (
	quotaPeriod = 100_000
	quotaTime   = 1_000
)

// histogramBins are of 5 % each, symmetric about 0; what is beyond counts in the outermost.
const histogramBins = 20

// What processors take for links is measured for so long at least; small messages go to and fro so
// often.
const (
	busyTime = time.Second
	toAndFro = 4000
)

// A small message through a forwarder is so many calls and wakings of threads in simulation, of
// both ranks and the forwarder together (TestSmallMessage).
const (
	smallCalls   = 5
	smallWakings = 2.3
)
