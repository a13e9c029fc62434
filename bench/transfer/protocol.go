// Package transfer moves messages between hosts, many at once, and times each: what `zipper
// calibrate` and `zipper bench contention` measure with. An Agent runs on every host and obeys a
// Session over its standard input and output, one JSON object a line. Within a cluster (or to a
// zipper node) a message is a TCP stream of its own; between clusters it goes through a forwarder
// with the engine that MPI programs use, without MPI around it. Every forwarder is a job of its
// own, so the session chooses which one a message takes.
package transfer

import (
	"github.com/leidenzipper/zipper/contention/calibrate"
	"github.com/leidenzipper/zipper/internal/jobenv"
)

// Direct is the Via of a message that takes no forwarder.
const Direct = -1

// part is one end of a message.
type part struct {
	ID    int    `json:"id"`
	Via   int    `json:"via"`            // forwarder, or Direct
	Addr  string `json:"addr,omitempty"` // of the receiver, if direct
	Peer  int    `json:"peer"`           // virtual rank, if not
	Bytes int    `json:"bytes"`
}

// request is what the session says; one of the fields is set.
type request struct {
	Join  *joinRequest `json:"join,omitempty"`
	Ready *batch       `json:"ready,omitempty"` // prepare to send and receive
	Go    bool         `json:"go,omitempty"`
	At    int64        `json:"at,omitempty"`   // go at this moment; 0: at once
	Play  *played      `json:"play,omitempty"` // the same for a program
	Leave bool         `json:"leave,omitempty"`
	Drop  bool         `json:"drop,omitempty"`  // leave the job joined last
	Copy  bool         `json:"copy,omitempty"`  // time copies in memory
	Costs bool         `json:"costs,omitempty"` // and what processors take
}

type joinRequest struct {
	Jobs []jobenv.Job `json:"jobs"` // one per forwarder
	Rank int          `json:"rank"` // in the cluster
	Host string       `json:"host"`
}

type batch struct {
	Sends    []part `json:"sends"`
	Receives []part `json:"receives"`
}

// answer is what the agent says to each request.
type answer struct {
	Port    int              `json:"port,omitempty"`    // the first answer of all: where it listens
	Seconds []timed          `json:"seconds,omitempty"` // to go: of each receive
	CPU     float64          `json:"cpu,omitempty"`     // seconds this process has used so far
	Began   int64            `json:"began,omitempty"`   // to go: the moment
	Took    float64          `json:"took,omitempty"`    // to go, of a program: seconds
	Rate    float64          `json:"rate,omitempty"`    // to copy: bytes/s
	Costs   *calibrate.Costs `json:"costs,omitempty"`
	Error   string           `json:"error,omitempty"`
}

type timed struct {
	ID      int     `json:"id"`
	Seconds float64 `json:"s"` // from go to the last byte
}
