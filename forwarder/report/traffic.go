package report

import (
	"cmp"
	"slices"
)

// Traffic is what went from the ranks of one cluster to those of another.
type Traffic struct {
	From         string `json:"from"`
	To           string `json:"to"`
	Messages     uint64 `json:"messages"`      // Eager and RTS frames
	PayloadBytes uint64 `json:"payload_bytes"` // the programs' data
	HeaderBytes  uint64 `json:"header_bytes"`  // everything else
	Frames       uint64 `json:"frames"`
	ResentFrames uint64 `json:"resent_frames"` // of these: sent before, over a link that was lost
	PassedBytes  uint64 `json:"passed_bytes"`  // of the data: sent without a copy (over verbs, or through pipes)
	PlacedBytes  uint64 `json:"placed_bytes"`  // of these: written straight into the receiving program's memory
}

// MaxDirections is how many directions of a job are told one by one, 256: a page that people read.
// A job of 256 clusters has 65536.
const MaxDirections = 256

// AllDirections reports whether all directions between so many clusters are told, also unused ones.
func AllDirections(clusters int) bool { return clusters*clusters <= MaxDirections }

// Bounded returns the greatest of the directions that were used, and the rest together.
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

// Others stands for clusters that are not told one by one. Clusters may have that name, too.
const Others = "(others)"

func (t *Traffic) add(o *Traffic) {
	t.Messages += o.Messages
	t.PayloadBytes += o.PayloadBytes
	t.HeaderBytes += o.HeaderBytes
	t.Frames += o.Frames
	t.ResentFrames += o.ResentFrames
	t.PassedBytes += o.PassedBytes
	t.PlacedBytes += o.PlacedBytes
}
