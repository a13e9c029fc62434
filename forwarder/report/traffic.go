package report

import (
	"cmp"
	"slices"
)

// Traffic is the traffic from the ranks of one cluster to those of another.
type Traffic struct {
	From         string `json:"from"`
	To           string `json:"to"`
	Messages     uint64 `json:"messages"`      // the number of messages, which is that of Eager and RTS frames
	PayloadBytes uint64 `json:"payload_bytes"` // the number of bytes of the programs' data
	HeaderBytes  uint64 `json:"header_bytes"`  // the number of bytes of headers and control frames
	Frames       uint64 `json:"frames"`
	ResentFrames uint64 `json:"resent_frames"` // the number of retransmitted frames
	// the bytes of data that were forwarded without a copy (over verbs, or through pipes)
	PassedBytes uint64 `json:"passed_bytes"`
	// the bytes of PassedBytes that were written into the receiving program's memory
	PlacedBytes uint64 `json:"placed_bytes"`
}

// MaxDirections is the maximum number of directions of a job that are listed, 256, because users
// read the page. A job of 256 clusters has 65536.
const MaxDirections = 256

// AllDirections reports whether all directions between a number of clusters are listed, including
// unused ones.
func AllDirections(clusters int) bool { return clusters*clusters <= MaxDirections }

// Bounded returns the MaxDirections entries of t with most data, and one entry with the sum of the
// others.
func Bounded(t []Traffic) []Traffic {
	if len(t) <= MaxDirections {
		return t
	}
	slices.SortStableFunc(t, func(a, b Traffic) int { return cmp.Compare(b.PayloadBytes, a.PayloadBytes) })
	rest := Traffic{From: Others, To: Others}
	for _, o := range t[MaxDirections:] {
		rest.add(&o)
	}
	return append(t[:MaxDirections], rest)
}

// Others is the name for clusters that are not listed. A cluster may have that name, too.
const Others = "(others)"

// add adds the counts of o, the traffic in another direction.
func (t *Traffic) add(o *Traffic) {
	t.Messages += o.Messages
	t.PayloadBytes += o.PayloadBytes
	t.HeaderBytes += o.HeaderBytes
	t.Frames += o.Frames
	t.ResentFrames += o.ResentFrames
	t.PassedBytes += o.PassedBytes
	t.PlacedBytes += o.PlacedBytes
}
