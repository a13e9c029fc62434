package relay

import (
	"sync/atomic"

	"github.com/leidenzipper/zipper/wire"
)

// tally counts frames of one run before they are added to the shared counters.
type tally struct{ frames, messages, payload, header uint64 }

func (t *tally) add(h *wire.Header) {
	payload := uint64(h.Payload())
	t.frames++
	t.payload += payload
	t.header += wire.HeaderLen + uint64(h.Length) - payload
	if h.Type == wire.TypeEager || h.Type == wire.TypeRTS {
		t.messages++
	}
}

// counters are the shared counts of one direction. Safe for concurrent use.
type counters struct{ frames, messages, payload, header, passed, placed atomic.Uint64 }

func (c *counters) add(t *tally) {
	c.frames.Add(t.frames)
	if t.messages > 0 {
		c.messages.Add(t.messages)
	}
	if t.payload > 0 {
		c.payload.Add(t.payload)
	}
	c.header.Add(t.header)
}

// Counts is what went from cluster to cluster, by the ranks' clusters. Safe for concurrent use.
type Counts struct {
	clusters  int
	clusterOf []int
	cells     []counters // from cluster * clusters + to cluster
}

// NewCounts makes counts of so many clusters; clusterOf has each rank's.
func NewCounts(clusters int, clusterOf []int) *Counts {
	return &Counts{clusters, clusterOf, make([]counters, clusters*clusters)}
}

// between are the counters of a frame's direction.
func (c *Counts) between(src, dst uint32) *counters {
	return &c.cells[c.clusterOf[src]*c.clusters+c.clusterOf[dst]]
}

// Count is what went in one direction.
type Count struct {
	Messages uint64 // Eager and RTS frames
	Payload  uint64 // bytes of the programs' data
	Header   uint64 // bytes of everything else
	Frames   uint64
	Passed   uint64 // bytes of Payload that were sent from where they were received
	Placed   uint64 // bytes of Passed that were written into the receiving program's memory
}

// Read tells what went from the ranks of one cluster to those of another.
func (c *Counts) Read(from, to int) Count {
	n := &c.cells[from*c.clusters+to]
	return Count{n.messages.Load(), n.payload.Load(), n.header.Load(), n.frames.Load(), n.passed.Load(),
		n.placed.Load()}
}
