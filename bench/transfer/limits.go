package transfer

import "time"

// maxMessage is the largest memory that a session can make an agent allocate for one message, in
// bytes.
const maxMessage = 1 << 30

// joinPatience and the others bound the parts of a session. They are far above the measured times,
// so that they end only a session that hangs: 4 MB at the lab's 20 Mbit/s take less than two
// seconds.
const (
	joinPatience   = 30 * time.Second // for all agents to join a job
	streamPatience = 10 * time.Second // to connect a stream, and to send the message's id
	patience       = 2 * time.Minute  // for one batch
	playPatience   = 10 * patience    // for a program of messages
	endPatience    = 5 * time.Second  // for an agent to end before it is killed
)

// batchTurn and playTurn bound the wait of one turn of an engine's progress. A batch is over when
// its last message has woken the engine that waits for it. In a program the end of a message at one
// forwarder starts another one elsewhere and wakes no engine there, so its turns are shorter.
const (
	batchTurn = 10 * time.Millisecond
	playTurn  = 5 * time.Millisecond
)

// ahead is the number of receives from one host by one forwarder that are posted at a time. More
// only take memory; fewer than the sends that an engine can have in progress would make these wait.
const ahead = 8

// copyBytes and copyTime are the size and the time of copies. The copies are of buffers too large
// for caches, in bytes. They take so long that steps of milliseconds of the processor time's clock
// do not matter.
const (
	copyBytes = 32 << 20
	copyTime  = 50 * time.Millisecond
)

// startsIn is the time between the request for a start and the moment at which all hosts of one
// machine begin together: long enough for the request to reach all of them.
const startsIn = 20 * time.Millisecond

// costsCalls is the number of calls at a time, moving one byte or costsBytes, and of wakings, by
// which processor times are measured. The median of costsTimes such measurements counts.
const (
	costsCalls = 200
	costsBytes = 64 << 10
	costsTimes = 9
)
