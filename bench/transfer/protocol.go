// Package transfer moves messages between hosts, many at once, and times each, for `zipper
// calibrate` and `zipper bench contention`. An agent (Serve) runs on every host and obeys a Session
// over its standard input and output, one JSON object a line. Within a cluster (or to a zipper
// node) a message is a TCP stream of its own; between clusters it goes through a forwarder with the
// engine that MPI programs use, without MPI around it. The hosts join a job of its own for every
// forwarder, so the session chooses the forwarder of a message.
package transfer

import (
	"github.com/leidenzipper/zipper/contention/calibrate"
	"github.com/leidenzipper/zipper/internal/jobenv"
)

// Direct is the Via of a message that takes no forwarder.
const Direct = -1

// part is one end of a message.
type part struct {
	ID int `json:"id"`
	// Via is the index of the forwarder, or Direct.
	Via int `json:"via"`
	// Addr is the receiver's address, which counts if the message is direct.
	Addr string `json:"addr,omitempty"`
	// Peer is the virtual rank of the other end, which counts if the message is not direct.
	Peer  int `json:"peer"`
	Bytes int `json:"bytes"`
}

// request is a request of the session; one of the fields is set, and At with Go.
type request struct {
	Join *joinRequest `json:"join,omitempty"`
	// Ready asks to prepare sends and receives.
	Ready *batch `json:"ready,omitempty"`
	Go    bool   `json:"go,omitempty"`
	// At is the moment for Go; 0: at once.
	At int64 `json:"at,omitempty"`
	// Play asks to prepare a program.
	Play  *played `json:"play,omitempty"`
	Leave bool    `json:"leave,omitempty"`
	// Drop asks to leave the job that was joined last.
	Drop bool `json:"drop,omitempty"`
	// Copy asks to time copies in memory.
	Copy bool `json:"copy,omitempty"`
	// Costs asks for processor times.
	Costs bool `json:"costs,omitempty"`
}

type joinRequest struct {
	Jobs []jobenv.Job `json:"jobs"` // one per forwarder, or one with all of them
	Rank int          `json:"rank"` // in the cluster
	Host string       `json:"host"`
}

type batch struct {
	Sends    []part `json:"sends"`
	Receives []part `json:"receives"`
}

// answer is the agent's answer to a request.
type answer struct {
	// Port is where the agent listens, in its first answer.
	Port int `json:"port,omitempty"`
	// Seconds has the time of each receive, in the answer to Go.
	Seconds []timed `json:"seconds,omitempty"`
	// CPU is the processor time of this process in seconds, in the answer to Go.
	CPU float64 `json:"cpu,omitempty"`
	// Began is the moment of the start, in the answer to Go.
	Began int64 `json:"began,omitempty"`
	// Took is the time of a program in seconds, in the answer to Go.
	Took float64 `json:"took,omitempty"`
	// Rate is in bytes/s, in the answer to Copy.
	Rate  float64          `json:"rate,omitempty"`
	Costs *calibrate.Costs `json:"costs,omitempty"`
	Error string           `json:"error,omitempty"`
}

type timed struct {
	ID      int     `json:"id"`
	Seconds float64 `json:"s"` // from go to the last byte
}
