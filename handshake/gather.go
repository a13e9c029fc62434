package handshake

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/leidenzipper/zipper/internal/facts"
	"github.com/leidenzipper/zipper/internal/wire"
	"github.com/leidenzipper/zipper/vrank"
)

// Gather collects the verified Joins of one job at a forwarder until every rank of every cluster
// has joined. It is not safe for concurrent use.
type Gather struct {
	job string
	key [wire.PublicKeyLen]byte
	// version is that of the protocol.
	version uint32
	layout  []wire.Cluster
	// base has the first virtual rank of each cluster.
	base []int
	// size is the number of ranks of the job.
	size int
	// ranks has the ranks that have joined by virtual rank. A big layout alone takes no memory.
	ranks map[int]rank
	// without has the clusters that are lost, by index. Their ranks need not join.
	without map[int]bool
	// absent is the number of ranks of these clusters that have not joined.
	absent int
	model  string
	// facts has the facts of each cluster, 0 for those of which no rank has joined.
	facts []facts.Word
	// modelOf is the cluster whose first Join set the model, the protocol and the settings.
	modelOf  string
	proto    string
	setting  string
	level    wire.Level
	patience uint32
	networks []string
	zippers  []wire.Zipper
	// rails is the number of forwarders that each rank joins.
	rails   uint16
	refused []refusal
}

// rank has the parts of a rank's Join that the Layout, or a return of the rank, needs.
type rank struct {
	host     string
	origin   string
	lib      string
	tag      uint32
	instance uint64
	doors    []wire.Port
	key      wire.SealKey
}

// NewGather starts a job with its first Join, which determines the key and the layout. It does not
// Add that Join.
func NewGather(j *wire.Join) *Gather {
	g := &Gather{job: j.Job, key: j.PublicKey, version: j.Version, layout: j.Layout, networks: j.Networks,
		zippers: j.Zippers, model: j.Model,
		modelOf: j.Cluster, proto: j.Protocol, setting: common(j.Settings), level: j.Level, patience: j.Patience,
		rails: j.Rails}
	n := 0
	for _, c := range j.Layout {
		g.base = append(g.base, n)
		n += int(c.Size)
	}
	g.size, g.ranks, g.without, g.facts = n, map[int]rank{}, map[int]bool{}, make([]facts.Word, len(j.Layout))
	return g
}

// Add adds a rank and returns its virtual rank, or the reason for a refusal, which changes nothing.
func (g *Gather) Add(j *wire.Join) (int, *Refused) {
	v, refused := g.place(j)
	if refused != nil {
		return 0, refused
	}
	if _, in := g.ranks[v]; in {
		return 0, Refusal(wire.RefuseTaken,
			"rank %d of cluster %q is already in job %q (on host %s): start each cluster once, and every run with a new job id",
			j.Rank, j.Cluster, g.job, g.ranks[v].host)
	}
	g.ranks[v] = rank{j.Host, j.Origin, j.Library, j.TagUB, j.Instance, j.Doors,
		wire.SealKey{Instance: j.Instance, Key: j.SealKey, Proof: j.Proof}}
	if g.lost(v) {
		g.absent--
	}
	g.facts[g.clusterOf(j.Cluster)] |= j.Facts // ranks of a cluster differ in unknown facts only
	return v, nil
}

// Again checks the Join of a rank of a complete job that has lost its link, and returns its virtual
// rank. Only the process that joined first may return.
func (g *Gather) Again(j *wire.Join) (int, *Refused) {
	v, refused := g.place(j)
	if refused != nil {
		return 0, refused
	}
	if _, same := g.Same(j); !same {
		return 0, Refusal(wire.RefuseTaken, "job %q is already running: give every run a new job id", g.job)
	}
	return v, nil
}

// Same returns the virtual rank of the process of a Join, if the process has joined already. A Join
// without an instance belongs to no process.
func (g *Gather) Same(j *wire.Join) (int, bool) {
	v, refused := g.place(j)
	if refused != nil {
		return 0, false
	}
	r, in := g.ranks[v]
	return v, in && j.Instance != 0 && r.instance == j.Instance && r.key.Key == j.SealKey
}

// Fits checks that a Join is for this job: secret, layout, forwarders and settings agree.
func (g *Gather) Fits(j *wire.Join) *Refused {
	_, refused := g.place(j)
	return refused
}

// Way returns how the job's ranks reach each other.
func (g *Gather) Way() Way { return Way{g.layout, g.networks, g.zippers} }

// Origin returns the host of a cluster's first rank, and the user for whom the rank says that it
// runs. Both are empty if the rank has not joined.
func (g *Gather) Origin(cluster int) (host, origin string) {
	r := g.ranks[g.base[cluster]]
	return r.host, r.origin
}

// Level returns the level to which the job trusts its networks.
func (g *Gather) Level() wire.Level { return g.level }

// Patience returns how long a rank out of reach is waited for, in milliseconds.
func (g *Gather) Patience() uint32 { return g.patience }

// Rails returns the number of forwarders that each rank of the job joins.
func (g *Gather) Rails() int { return int(g.rails) }

// place checks the settings that must be equal in all ranks, and returns the joiner's virtual rank.
func (g *Gather) place(j *wire.Join) (int, *Refused) {
	if j.PublicKey != g.key {
		return 0, Refusal(wire.RefuseSecret, "job %q was opened with another secret", g.job)
	}
	if s := g.disagree(j.Layout); s != "" {
		return 0, Refusal(wire.RefuseLayout, "%s", s)
	}
	if !slices.Equal(j.Networks, g.networks) {
		return 0, Refusal(wire.RefuseLayout,
			"cluster %q names other networks than cluster %q: start all clusters with the same --network names",
			j.Cluster, g.modelOf)
	}
	if !slices.EqualFunc(j.Zippers, g.zippers, func(x, y wire.Zipper) bool { return slices.Equal(x.Ports, y.Ports) && x.HostKey == y.HostKey }) {
		return 0, Refusal(wire.RefuseLayout,
			"cluster %q names other forwarders than cluster %q: start all clusters with the same --zipper addresses "+
				"and host keys",
			j.Cluster, g.modelOf)
	}
	if j.Version != g.version {
		return 0, Refusal(wire.RefuseSettings,
			"protocol version %d in cluster %q, %d in %q: install the same release of Zipper on all clusters of a job",
			j.Version, j.Cluster, g.version, g.modelOf)
	}
	if j.Model != g.model {
		return 0, Refusal(wire.RefuseModel, "data model %q in cluster %q, %q in %q", j.Model, j.Cluster,
			g.model, g.modelOf)
	}
	if s := g.unfit(j); s != "" {
		return 0, Refusal(wire.RefuseModel, "%s", s)
	}
	if j.Protocol != g.proto {
		return 0, Refusal(wire.RefuseSettings,
			"%s in cluster %q, %s in %q: start all clusters with the same --protocol",
			ProtocolName(j.Protocol), j.Cluster, ProtocolName(g.proto), g.modelOf)
	}
	if s := common(j.Settings); s != g.setting {
		return 0, &Refused{wire.RefuseSettings, unequal(s, j.Cluster, g.setting, g.modelOf), false}
	}
	if j.Level != g.level {
		return 0, Refusal(wire.RefuseSettings,
			"level %v in cluster %q, %v in %q: start all clusters with the same --level",
			j.Level, j.Cluster, g.level, g.modelOf)
	}
	if j.Patience != g.patience {
		return 0, Refusal(wire.RefuseSettings,
			"patience of %d ms in cluster %q, %d in %q: start all clusters with the same --patience",
			j.Patience, j.Cluster, g.patience, g.modelOf)
	}
	if j.Rails != g.rails {
		return 0, Refusal(wire.RefuseLayout,
			"cluster %q names %s, cluster %q %d: start all clusters with the same --zipper addresses",
			j.Cluster, count(int(j.Rails), "forwarder"), g.modelOf, g.rails)
	}
	return g.base[g.clusterOf(j.Cluster)] + int(j.Rank), nil
}

// clusterOf returns the index of a cluster of the job.
func (g *Gather) clusterOf(name string) int {
	return slices.IndexFunc(g.layout, func(c wire.Cluster) bool { return c.Name == name })
}

// unfit returns the reason for which the format of data in a joiner's memory does not fit those of
// the clusters that have joined, or "".
func (g *Gather) unfit(j *wire.Join) string {
	for c, f := range g.facts {
		s := j.Facts.Fits(f)
		if own := g.layout[c].Name == j.Cluster; s == "" && own && facts.Mixed([]facts.Word{f, j.Facts}) {
			s = "the formats of long double differ inside the cluster"
		}
		if s != "" {
			return fmt.Sprintf("data in memory: %v in cluster %q, %v in %q: %s", j.Facts, j.Cluster, f, g.layout[c].Name, s)
		}
	}
	return ""
}

// unequal returns an error that names the settings in which two clusters differ, and the remedy.
func unequal(these, cluster, those, other string) string {
	words := func(s string) []string {
		return strings.FieldsFunc(s, func(r rune) bool { return r == ' ' || r == ',' })
	}
	without := func(s, t string) string {
		known := words(t)
		return strings.Join(slices.DeleteFunc(words(s), func(w string) bool { return slices.Contains(known, w) }), " ")
	}
	these, those = without(these, those), without(those, these)
	advice := ""
	for _, o := range [][2]string{{"ZIPPER_ORDER", "--order"}, {SettingOnLoss, "--on-loss"}, {SettingQuorum, "--quorum"}} {
		if strings.Contains(these+those, o[0]+"=") {
			advice += "; give all halves the same " + o[1]
		}
	}
	return fmt.Sprintf("settings %q in cluster %q, %q in %q: they must be equal in all clusters%s", these, cluster,
		those, other, advice)
}

// ProtocolName returns the name of a Join's protocol for users.
func ProtocolName(p string) string {
	if p == "" {
		return "the usual protocol"
	}
	return fmt.Sprintf("protocol %q", p)
}

// OutlivesClusters reports whether the job goes on when a cluster is lost.
func (g *Gather) OutlivesClusters() bool { return Setting(g.setting, SettingOnLoss) == "continue" }

// BothSidesGoOn reports whether either side of a cut between forwarders goes on, in a job that
// outlives clusters.
func (g *Gather) BothSidesGoOn() bool { return Setting(g.setting, SettingQuorum) == "both" }

// Remove frees a virtual rank's place, before the job is complete.
func (g *Gather) Remove(v int) {
	if g.In(v) && g.lost(v) {
		g.absent++
	}
	delete(g.ranks, v)
}

// DoWithout makes the job complete without the ranks of a cluster, which is lost.
func (g *Gather) DoWithout(cluster int) {
	if g.without[cluster] {
		return
	}
	g.without[cluster] = true
	first := g.base[cluster]
	g.absent += int(g.layout[cluster].Size)
	for v := range g.ranks {
		if v >= first && v < first+int(g.layout[cluster].Size) {
			g.absent--
		}
	}
}

// lost reports whether the cluster of a virtual rank is lost.
func (g *Gather) lost(v int) bool {
	if len(g.without) == 0 {
		return false
	}
	c, there := slices.BinarySearch(g.base, v)
	if !there {
		c--
	}
	return g.without[c]
}

// In tells whether a virtual rank has joined.
func (g *Gather) In(v int) bool {
	_, in := g.ranks[v]
	return in
}

// Joined returns the number of ranks that have joined.
func (g *Gather) Joined() int { return len(g.ranks) }

// Ranks returns the number of ranks of the job.
func (g *Gather) Ranks() int { return g.size }

// Complete reports whether all ranks of the clusters that are not lost have joined.
func (g *Gather) Complete() bool { return len(g.ranks)+g.absent == g.size }

// Host returns the host of a virtual rank that has joined.
func (g *Gather) Host(v int) string { return g.ranks[v].host }

// Namesakes returns the names that hosts of more than one cluster have.
func (g *Gather) Namesakes() map[string]bool {
	shared, cluster := map[string]bool{}, map[string]int{}
	for c, first := range g.base {
		for v := first; v < first+int(g.layout[c].Size); v++ {
			host := g.ranks[v].host
			if host == "" { // a rank of a lost cluster
				continue
			}
			if other, there := cluster[host]; there && other != c {
				shared[host] = true
			}
			cluster[host] = c
		}
	}
	return shared
}

// Layout returns the answer for all joiners of a complete job; the caller sets Rank and Namesake
// for each. The slices are shared. It fails if the answer is too long for a frame.
func (g *Gather) Layout() (wire.Layout, *Refused) {
	l := wire.Layout{Version: g.version, TagUB: 1<<32 - 1, Clusters: g.layout, Facts: g.facts}
	for _, b := range g.base {
		l.Libraries = append(l.Libraries, g.ranks[b].lib)
	}
	for v := range g.size {
		r, in := g.ranks[v]
		if in {
			l.TagUB = min(l.TagUB, r.tag)
		}
		for _, d := range r.doors {
			l.Doors = append(l.Doors, wire.Door{Rank: uint32(v), Instance: r.instance, Port: d})
		}
		if g.level == wire.LevelSealed {
			l.Keys = append(l.Keys, r.key)
		}
	}
	if n := len(l.Append(nil)); n > wire.MaxLength {
		return wire.Layout{}, Refusal(wire.RefuseLayout,
			"the layout of job %q with all addresses has %d bytes, at most %d fit: use fewer dual-homed ranks, "+
				"or do not seal a job of so many",
			g.job, n, wire.MaxLength)
	}
	return l, nil
}

// Missing names the missing ranks: "cluster b (4 ranks), ranks 1-2,5 of cluster a". It takes time
// for the ranks that have joined, not for all ranks that a stranger announces.
func (g *Gather) Missing() string {
	var whole, parts []string
	there := slices.Sorted(maps.Keys(g.ranks))
	for c, cl := range g.layout {
		var gone []span
		next, end, n := g.base[c], g.base[c]+int(cl.Size), 0
		lack := func(to int) {
			if next < to {
				gone = append(gone, span{next - g.base[c], to - 1 - g.base[c]})
				n += to - next
			}
		}
		for len(there) > 0 && there[0] < end {
			lack(there[0])
			next, there = there[0]+1, there[1:]
		}
		lack(end)
		switch {
		case g.without[c]:
		case n == int(cl.Size):
			whole = append(whole, fmt.Sprintf("cluster %s (%s)", cl.Name, count(n, "rank")))
		case n == 1:
			parts = append(parts, fmt.Sprintf("rank %d of cluster %s", gone[0].first, cl.Name))
		case n > 1:
			parts = append(parts, fmt.Sprintf("ranks %s of cluster %s", spans(gone), cl.Name))
		}
	}
	list := append(whole, parts...)
	if n := len(list) - maxSpans; n > 0 {
		list = append(list[:maxSpans], fmt.Sprintf("and parts of %d more clusters", n))
	}
	return strings.Join(list, ", ")
}

func (g *Gather) disagree(l []wire.Cluster) string {
	same := len(l) == len(g.layout)
	for i := 0; same && i < len(l); i++ {
		same = l[i] == g.layout[i]
	}
	if same {
		return ""
	}
	return fmt.Sprintf("layout %s here, but %s in the ranks of job %q already there: start all clusters with the same layout", format(l), format(g.layout), g.job)
}

func format(l []wire.Cluster) string {
	clusters := make([]vrank.Cluster, len(l))
	for i, c := range l {
		clusters[i] = vrank.Cluster{Name: c.Name, Size: int(c.Size)}
	}
	return vrank.Format(clusters)
}

// span is a run of numbers.
type span struct{ first, last int }

// spans formats runs as "1-2,5".
func spans(runs []span) string {
	var b strings.Builder
	for i, r := range runs {
		if i == maxSpans {
			more := 0
			for _, r := range runs[i:] {
				more += r.last - r.first + 1
			}
			fmt.Fprintf(&b, " and %d more", more)
			break
		}
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, "%d", r.first)
		if r.last > r.first {
			fmt.Fprintf(&b, "-%d", r.last)
		}
	}
	return b.String()
}

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
