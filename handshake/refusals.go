package handshake

import (
	"fmt"
	"slices"
	"strings"

	"github.com/leidenzipper/zipper/internal/wire"
)

// refusal is a reason for which ranks of a cluster were not let in.
type refusal struct {
	cluster string
	code    wire.RefuseCode
	n       int
}

// NoteRefusal notes that somebody who wanted to be in was refused, and reports whether the job can
// never become complete for it: a process that has proven to hold the job's secret was started for
// another job than those that are here. A stranger can bring that about for no job but his own.
func (g *Gather) NoteRefusal(j *wire.Join, code wire.RefuseCode) (hopeless bool) {
	i := slices.IndexFunc(g.refused, func(r refusal) bool { return r.cluster == j.Cluster && r.code == code })
	switch {
	case i >= 0:
		g.refused[i].n++
	case len(g.refused) < maxRefusals:
		g.refused = append(g.refused, refusal{j.Cluster, code, 1})
	}
	switch code {
	case wire.RefuseLayout, wire.RefuseModel, wire.RefuseSettings: // after the signature was found good
		return j.PublicKey == g.key
	}
	return false
}

// Refusals names who was not let in and why: "2 ranks of cluster "b" (wrong secret)"; empty:
// nobody.
func (g *Gather) Refusals() string {
	var l []string
	for _, r := range g.refused {
		l = append(l, fmt.Sprintf("%s of cluster %q (%v)", count(r.n, "rank"), r.cluster, r.code))
	}
	return strings.Join(l, ", ")
}
