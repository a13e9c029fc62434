package contend

import "time"

// Near is the error up to which a transfer counts as predicted well.
const Near = 0.10

// Busy and Disturbed tell that a measurement may be one of processors and not of the network, in
// parts of the processor time. Above Busy, used and stolen together, a measurement may have waited
// for processors, and the report names it. From Disturbed on, stolen by a hypervisor, a pattern is
// measured again, Attempts times at most: the run takes longer, and its result does not depend on
// other guests of the machine.
const (
	Busy      = 0.5
	Disturbed = 0.25
	Attempts  = 3
)

// latencySamples is the number of small messages whose median is a latency. It is odd.
const latencySamples = 9

// window is the largest number of bytes in flight on a connection in the lab. It is fixed, and
// smaller than the queues, so that nothing is lost and the sharing of links is measured. A sender's
// buffer of send bytes holds the bytes in flight and unsent ones, with the memory that the system
// needs beside; a receiver's buffer does not matter.
const (
	window  = 256 << 10
	send    = 448 << 10
	receive = 8 << 20
)

// packet is the size of a packet in the lab, and burst the bytes that a limited link passes at once
// after a pause.
const (
	packet = 9000
	burst  = 16 << 10
)

// quotaTime and quotaPeriod limit a forwarder that has to be the bottleneck: it gets quotaTime of a
// processor in each quotaPeriod, both in microseconds.
const (
	quotaPeriod = 100_000
	quotaTime   = 1_000
)

// histogramBins is the number of bins, of 5 % each, symmetric about 0; larger errors count in the
// outermost bins.
const histogramBins = 20

// busyTime is the time for which the processor time of links is measured at least; toAndFro is the
// number of small messages, which go to and fro in turn.
const (
	busyTime = time.Second
	toAndFro = 4000
)

// smallCalls and smallWakings are the cost of a small message through a forwarder in simulation, in
// calls and wakings of threads, of both ranks and the forwarder together
// (TestSimulationAndCalibrationAgreeOnASmallMessage).
const (
	smallCalls   = 5
	smallWakings = 2.3
)
