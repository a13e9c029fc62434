package launch

import "time"

// Grace is how long processes have to end after they were told to, before they are killed: for
// mpirun to pass the signal on and clean up, against how long one waits after Ctrl-C. Chosen, not
// measured.
const Grace = 3 * time.Second

// tellTime bounds telling a forwarder that a half has ended, and asking the batch system why, 3 s:
// a batch system that ends a job waits longer than that before it kills, as a rule.
const tellTime = 3 * time.Second

// othersTime is how long the other halves have to end by themselves once one has failed. The
// forwarder tells their ranks, which end with the same code; this is only for those that cannot
// hear it, so it need only be longer than that takes on a busy machine. Chosen, not measured.
const othersTime = 10 * time.Second

// What a job waits for is shown from progressFrom on, 1 s, which most are complete in, and then
// every progressStep, half a second.
const (
	progressFrom = time.Second
	progressStep = 500 * time.Millisecond
)

// Room that Open MPI needs, bytes. sessionRoom is for what its launcher keeps in the run directory
// of a cluster: 8.03 MiB with 2 to 16 ranks (measured with Open MPI 4.1), and less than 9 MiB make
// its PMIx fail. segmentRoom is for one rank's shared memory: its default (btl_vader_segment_size),
// and a page; it fills up only if many messages are under way.
const (
	sessionRoom = 9 << 20
	segmentRoom = 4<<20 + 4<<10
)

// reapRounds bounds how often what outlives its launcher is looked for: a process may fork while it
// is.
const reapRounds = 20

// execWait is how long processes in the midst of execve are waited for, whose environment cannot be
// read yet, 2 s. They take less than 1 ms, unless other processes have all cores.
const execWait = 2 * time.Second

// What goes through the pipe to a half on another host, bytes: one frame's body at most, so that a
// stream that is none of ours asks for no memory, and what is read of standard input at a time.
const (
	pipeMax    = 1 << 20
	stdinPiece = 64 << 10
)

// How often what a script has started is looked at until it is zipped, at first and after a while:
// a look reads some files of each process on the host, 3 ms with 300 of them. One that has an MPI
// library without ours in so many looks, for more than a second, will not only print its version.
// Chosen, not measured.
const (
	strayPause    = 300 * time.Millisecond
	maxStrayPause = 3 * time.Second
	strayLooks    = 4
)
