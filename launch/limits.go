package launch

import "time"

// Grace is the time between the signal that ends processes and the one that kills them: mpirun
// needs some to pass the signal on and to clean up, and a user waits for it after Ctrl-C. Chosen,
// not measured.
const Grace = 3 * time.Second

// tellTime bounds a report to a forwarder that a half has ended, and the question to the batch
// system for the reason, 3 s: a batch system that ends a job usually waits longer before it kills.
const tellTime = 3 * time.Second

// othersTime is how long the other halves have to end by themselves once one has failed. The
// forwarder tells their ranks, which end with the same code. This time is only for ranks that the
// forwarder does not reach, so it needs to be longer only than those take on a busy machine.
// Chosen, not measured.
const othersTime = 10 * time.Second

// progressFrom is the time after which the user sees which ranks a job waits for, 1 s, because most
// jobs are complete within it. progressStep is the time between updates, half a second.
const (
	progressFrom = time.Second
	progressStep = 500 * time.Millisecond
)

// sessionRoom and segmentRoom are the room in bytes that Open MPI needs. sessionRoom is for the
// files of its launcher in the run directory of a cluster: 8.03 MiB with 2 to 16 ranks (measured
// with Open MPI 4.1), and less than 9 MiB make its PMIx fail. segmentRoom is for one rank's shared
// memory: its default (btl_vader_segment_size), and a page. It fills up only if many messages are
// in flight.
const (
	sessionRoom = 9 << 20
	segmentRoom = 4<<20 + 4<<10
)

// pipeRoom is the capacity of a pipe in Linux, in bytes: no more is in it when its writers have
// ended.
const pipeRoom = 64 << 10

// pipeMax bounds the body of a frame through the pipe to a half on another host, in bytes, so that
// a stream from another program cannot ask for memory. stdinPiece is the part of standard input
// that is read at a time, in bytes.
const (
	pipeMax    = 1 << 20
	stdinPiece = 64 << 10
)

// strayPause is the time between looks at the processes of a script, until one is zipped, at first,
// and maxStrayPause after a while. A look reads some files of each process on the host, 3 ms with
// 300 of them. strayLooks is the number of looks, more than a second, in which a process has an MPI
// library without ours: it then does more than print its version. Chosen, not measured.
const (
	strayPause    = 300 * time.Millisecond
	maxStrayPause = 3 * time.Second
	strayLooks    = 4
)
