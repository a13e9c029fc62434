package forwarder

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

// Traffic is what went from the ranks of one cluster to those of another.
type Traffic struct {
	From         string `json:"from"`
	To           string `json:"to"`
	Messages     uint64 `json:"messages"`      // Eager and RTS frames
	PayloadBytes uint64 `json:"payload_bytes"` // the programs' data
	HeaderBytes  uint64 `json:"header_bytes"`  // everything else
	Frames       uint64 `json:"frames"`
	PassedBytes  uint64 `json:"passed_bytes"` // of the data: sent from where they were received, without a copy (over verbs, or through pipes)
	PlacedBytes  uint64 `json:"placed_bytes"` // of these: written straight into the receiving program's memory
}

func (c *counters) read(from, to string) Traffic {
	return Traffic{from, to, c.messages.Load(), c.payload.Load(), c.header.Load(), c.frames.Load(), c.passed.Load(), c.placed.Load()}
}
