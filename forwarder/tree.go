package forwarder

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/leidenzipper/zipper/handshake"
	"github.com/leidenzipper/zipper/vrank"
	"github.com/leidenzipper/zipper/wire"
)

// hops is what a job of several hops has beside: the tree of networks and forwarders, and where
// this one is in it. Guarded by Forwarder.mu; here, clusters, zippers and routes are fixed.
type hops struct {
	here     int // this forwarder's index in zippers
	clusters int // networks below this index have ranks
	zippers  []wire.Zipper
	routes   *vrank.Routes
	bridges  map[int]*bridge        // that are there, by the index of the other end
	joins    []*wire.Join           // of all ranks so far; a forwarder that begins anew is told
	ready    []bool                 // forwarders that see all ranks
	dialled  bool                   // a rank has joined here
	cert     *handshake.Certificate // its Join
	ctx      context.Context        // ends with the gathering
	cancel   context.CancelFunc
	life     context.Context // ends with the job
	over     context.CancelFunc
	staying  int             // ranks here that have not said Bye
	left     map[uint32]bool // ranks that took their leave of a forwarder that was at this one's place before
	failures map[int]string  // of the last attempts to dial those that are not reached
}

// newHops is for a job that gathers for at most a while.
func newHops(j *wire.Join, here int, timeout time.Duration) (*hops, error) {
	names := make([]string, len(j.Layout), len(j.Layout)+len(j.Networks))
	for i, c := range j.Layout {
		names[i] = c.Name
	}
	names = append(names, j.Networks...)
	on := make([][]int, len(j.Zippers))
	for i, z := range j.Zippers {
		for _, p := range z.Ports {
			on[i] = append(on[i], int(p.Network))
		}
	}
	routes, err := vrank.Tree(names, len(j.Layout), on)
	if err != nil {
		return nil, err
	}
	h := &hops{here: here, clusters: len(j.Layout), zippers: j.Zippers, routes: routes,
		bridges: map[int]*bridge{}, left: map[uint32]bool{}, ready: make([]bool, len(j.Zippers)),
		failures: map[int]string{}}
	// Dialling ends before the job's patience does, so that it is said why there is no link.
	h.life, h.over = context.WithCancel(context.Background())
	h.ctx, h.cancel = context.WithTimeout(h.life, timeout*3/4)
	return h, nil
}

// next is the forwarder that frames for a cluster go to from zipper; -1: it delivers them itself.
func (h *hops) next(zipper, cluster int) int {
	if n := h.routes.Next(zipper, cluster); len(n) > 0 {
		return n[0] // in a tree there is one
	}
	return -1
}

// neighbour gives the network that zipper k and this one share, k's address on it, and whether the
// link is opened from here.
func (h *hops) neighbour(k int) (n neighbour, ok bool) {
	for _, mine := range h.zippers[h.here].Ports {
		for _, p := range h.zippers[k].Ports {
			if p.Network == mine.Network && k != h.here {
				dials, possible := vrank.Dials(h.end(h.here, mine), h.end(k, p))
				return neighbour{int(p.Network), p.Address, mine.Address, dials}, possible
			}
		}
	}
	return neighbour{}, false
}

// neighbour is another forwarder on a network that this one is on.
type neighbour struct {
	network int
	addr    string // empty: it does not listen there
	mine    string // the same of this one
	dials   bool   // this forwarder opens the link
}

// end is zipper k's end of a link at one of its ports.
func (h *hops) end(k int, p wire.Port) vrank.LinkEnd {
	ranks := slices.ContainsFunc(h.zippers[k].Ports, func(p wire.Port) bool { return int(p.Network) < h.clusters })
	return vrank.LinkEnd{Zipper: k, Listens: p.Address != "", Ranks: ranks}
}

// name is what people know zipper k by: the address that it has here, or another one.
func (h *hops) name(k int) string {
	if n, ok := h.neighbour(k); ok && n.addr != "" {
		return n.addr
	}
	for _, p := range h.zippers[k].Ports {
		if p.Address != "" {
			return p.Address
		}
	}
	return fmt.Sprintf("number %d", k+1)
}

// Links that a job of several hops lacks while it gathers. Who knows of one, and why, need not be
// the forwarder whose ranks are first at the end of their patience, and may have no ranks. So each
// tells its neighbours which links it lacks, and what it has heard from those on its other networks
// (Notice): when a link to them is there, and when that changes. Whoever gives the job up, at
// whatever moment, can say what is wrong and what to do.

// gaps says which neighbours have no link, and what those that have one lack. to, if not nil, is
// who is told: what others on that network lack it hears from them.
func (h *hops) gaps(to *bridge) string {
	var list []string
	for k := range h.zippers {
		n, ok := h.neighbour(k)
		switch {
		case !ok || h.bridges[k] != nil:
		case n.dials && !h.dialled:
			list = append(list, fmt.Sprintf("no link to the forwarder %s, which this one dials once a rank has joined it",
				h.name(k)))
		case n.dials:
			why := ""
			if s := h.failures[k]; s != "" {
				why = " (" + s + ")"
			}
			list = append(list, fmt.Sprintf("no link to the forwarder %s%s: %s", h.name(k), why, unreached))
		default:
			list = append(list, fmt.Sprintf("no link from the forwarder %s, which dials this one at %s once a rank "+
				"has joined it: its log says why; is that this one's address there, does the firewall here let that port in?",
				h.name(k), n.mine))
		}
	}
	for _, k := range slices.Sorted(maps.Keys(h.bridges)) {
		if br := h.bridges[k]; br.lacks != "" && (to == nil || br.network != to.network) {
			list = append(list, fmt.Sprintf("the forwarder %s says: %s", br.addr, br.lacks))
		}
	}
	if n := len(list) - maxGaps; n > 0 {
		list = append(list[:maxGaps], fmt.Sprintf("and %d more such links", n))
	}
	return strings.Join(list, "; ")
}

// tellGaps tells the neighbours what has changed. With f.mu.
func tellGaps(j *job) {
	if j.state != gathering {
		return
	}
	for _, br := range j.bridges() {
		if s := gapText(j.hops.gaps(br)); s != br.told {
			br.told = s
			br.send(wire.TypeNotice, &wire.Notice{Text: s})
		}
	}
}

// hearsGaps takes the other end's word for what it lacks. With f.mu.
func (br *bridge) hearsGaps(n *wire.Notice) {
	if br.notices++; br.notices <= maxGapNotices {
		br.lacks = gapText(wire.Printable(n.Text))
		tellGaps(br.job)
	}
}

// failing notes why a neighbour is not reached so far. Any thread.
func (br *bridge) failing(why error) {
	f, h := br.f, br.job.hops
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.policy.Load().servesStrangers() { // a stranger's job learns nothing of what is there
		h.failures[br.zipper] = why.Error()
		tellGaps(br.job)
	}
}

// gapText bounds what is told of gaps.
func gapText(s string) string {
	if len(s) <= maxGapText {
		return s
	}
	return strings.ToValidUTF8(s[:maxGapText], "") + "…"
}

// belongs checks that a rank is one of this forwarder's.
func (j *job) belongs(join *wire.Join) *handshake.Refused {
	h := j.hops
	if int(join.Here) != h.here || h.next(h.here, j.clusterIndex(join.Cluster)) >= 0 {
		return refusal(wire.RefuseLayout,
			"job %q does not reach this forwarder from cluster %s: are the --zipper addresses right, "+
				"and in the same order in all clusters?", j.id, join.Cluster)
	}
	return nil
}

// dialsTo reports whether this forwarder opens the link to that one. With f.mu.
func (h *hops) dialsTo(zipper int) bool {
	if br := h.bridges[zipper]; br != nil {
		return br.dials
	}
	n, _ := h.neighbour(zipper)
	return n.dials && (h.dialled || len(h.bridges) == 0)
}

// mayBridge checks that a forwarder may have a link with this one, as that one says they are
// numbered; the link is that of a job that begins, or a further one (trunk.go).
func (j *job) mayBridge(from, here, number int) *handshake.Refused {
	h := j.hops
	_, ok := h.neighbour(from)
	br := h.bridges[from]
	switch {
	case here != h.here || !ok || h.dialsTo(from) || number >= maxConnections:
		return refusal(wire.RefuseLayout,
			"job %q wants no link between these forwarders: are the --zipper addresses right?", j.id)
	case j.state == running && (br == nil || !br.wanted() || !j.goesOn() && (br.said || number == 0)):
		return refusal(wire.RefuseTaken, "job %q needs that link no more", j.id)
	case j.state == running:
	case j.state != gathering && j.state != ready:
		return refusal(wire.RefuseTaken, "job %q is already running: give every run a new job id", j.id)
	case number == 0 && br != nil:
		return refusal(wire.RefuseTaken, "job %q has a link between these forwarders already", j.id)
	case number > 0 && br == nil:
		return refusal(wire.RefuseTaken, "job %q has no link between these forwarders", j.id)
	}
	return nil
}

// opensAgain reports whether another forwarder opens the first connection of a link that it has
// while the job gathers: it knows sooner than we that the one it had is dead. Then it has given up
// the job that it gathered, and begins anew. With f.mu.
func opensAgain(j *job, join *wire.Join, number int) bool {
	if j.state != gathering || j.hops == nil || number > 0 || j.gather.Fits(join) != nil {
		return false
	}
	br := j.hops.bridges[int(join.Here)]
	return br != nil && !br.dials
}

// clusterIndex finds a Join's cluster, which is in its layout.
func (j *job) clusterIndex(name string) int {
	return slices.IndexFunc(j.clusters, func(c wire.Cluster) bool { return c.Name == name })
}

// leftBefore takes another forwarder's word, while a job gathers, that a rank will not come: this
// forwarder's predecessor has let it go.
func leftBefore(p *peer, b *job, body []byte) error {
	s, err := wire.ParseRailState(body)
	if err == nil {
		err = p.came.Take(s.Number)
	}
	if err == nil && (!s.Gone || int64(s.Rank) >= int64(b.gather.Ranks())) {
		err = fmt.Errorf("state of rank %d", s.Rank)
	}
	if err == nil {
		b.hops.left[s.Rank] = true
	}
	return err
}
