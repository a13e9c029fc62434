package handshake

import (
	"fmt"
	"slices"
	"strings"

	"github.com/leidenzipper/zipper/internal/wire"
)

// refusal counts the ranks of a cluster that were refused for a reason.
type refusal struct {
	cluster string
	code    wire.RefuseCode
	n       int
}

// NoteRefusal records a refused joiner, and tells whether the job can never become complete because
// of it: a process that has proven to hold the job's secret was started for another job than the
// ranks that have joined. A stranger can cause that for no job but its own.
func (g *Gather) NoteRefusal(j *wire.Join, code wire.RefuseCode) (impossible bool) {
	i := slices.IndexFunc(g.refused, func(r refusal) bool { return r.cluster == j.Cluster && r.code == code })
	switch {
	case i >= 0:
		g.refused[i].n++
	case len(g.refused) < maxRefusals:
		g.refused = append(g.refused, refusal{j.Cluster, code, 1})
	}
	switch code {
	case wire.RefuseLayout, wire.RefuseModel, wire.RefuseSettings: // the signature was found good before
		return j.PublicKey == g.key
	}
	return false
}

// Refusals names the refused ranks and the reasons: "2 ranks of cluster "b" (wrong secret)". It is
// empty if none was refused.
func (g *Gather) Refusals() string {
	var l []string
	for _, r := range g.refused {
		l = append(l, fmt.Sprintf("%s of cluster %q (%v)", count(r.n, "rank"), r.cluster, r.code))
	}
	return strings.Join(l, ", ")
}
