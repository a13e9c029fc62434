package transfer

import "time"

// maxMessage is what a session can make an agent allocate for one message, bytes.
const maxMessage = 1 << 30

// How long the parts of a session may take. They are far above what is measured, so that only what
// hangs is ended: 4 MB at the lab's 20 Mbit/s take less than two seconds.
const (
	joinPatience   = 30 * time.Second // for all agents to join a job
	streamPatience = 10 * time.Second // to connect a stream, and to say which message it is
	patience       = 2 * time.Minute  // of one batch
	playPatience   = 10 * patience    // of a program of messages
	endPatience    = 5 * time.Second  // for an agent to end after it was told to; then it is killed
)

// How long one turn of an engine's progress may wait. A batch is over when its last message has
// woken the engine that waits for it. In a program the end of a message at one forwarder starts
// another one elsewhere and wakes nobody there, so its turns are shorter.
const (
	batchTurn = 10 * time.Millisecond
	playTurn  = 5 * time.Millisecond
)

// ahead is how many receives from one host by one forwarder are posted at a time. More only takes
// memory; fewer than the sends that an engine can have under way would make these wait.
const ahead = 8

// The copies that are timed are of buffers too large for caches, in bytes. They take so long that
// it does not matter if the clock of processor time steps by milliseconds.
const (
	copyBytes = 32 << 20
	copyTime  = 50 * time.Millisecond
)

// startsIn is how long it takes from asking for a start at which all hosts of one machine are to
// begin together: so long that all have been told.
const startsIn = 20 * time.Millisecond

// What processors take is measured by so many calls at a time, moving one byte or costsBytes, and
// so many wakings; the median of costsTimes such measurements counts.
const (
	costsCalls = 200
	costsBytes = 64 << 10
	costsTimes = 9
)
