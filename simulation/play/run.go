package play

import (
	"slices"
	"strings"
	"time"

	"github.com/leidenzipper/zipper/contention/platform"
	"github.com/leidenzipper/zipper/internal/jobenv"
	"github.com/leidenzipper/zipper/simulation/kernel"
	"github.com/leidenzipper/zipper/simulation/process"
)

// run is a run while it happens.
type run struct {
	Options
	*site
	world      process.World
	messages   []message
	procs      []*proc
	byRank     map[int]*proc
	byHost     map[string]*proc
	jobs       []*simJob
	forwarders []*process.Forwarder
	ends       []*kernel.End
	in         int           // members that have joined
	members    int           // that are to
	begin      time.Duration // the first message may start
	left       int           // messages that are not over
	moved      time.Duration // when something was over last
	err        error
	done       []string // faults
	used       map[string]time.Duration
	whenIn     func() // is called when all members are in
}

// fail ends the run.
func (r *run) fail(err error) {
	if r.err == nil {
		r.err = err
	}
}

// layout is the clusters that have processes.
func (r *run) layout() (list []jobenv.Cluster) {
	for i, c := range r.p.Clusters {
		n := 0
		for _, p := range r.procs {
			if p.cluster == i {
				n++
			}
		}
		if n > 0 {
			list = append(list, jobenv.Cluster{Name: c.Name, Size: n})
		}
	}
	return list
}

// port is a zipper's address on a cluster's network.
func port(zipper, cluster string) string { return zipper + "/" + cluster }

// address reads it.
func (r *run) address(addr string) (zipper, cluster string) {
	zipper, cluster, _ = strings.Cut(addr, "/")
	return zipper, cluster
}

// joins reports whether a zipper has a port on every one of some clusters.
func joins(z *platform.Zipper, list []jobenv.Cluster) bool {
	return !slices.ContainsFunc(list, func(c jobenv.Cluster) bool { _, ok := z.Ports[c.Name]; return !ok })
}

// spread reports whether each pair of hosts takes one zipper: then each zipper has a job of its
// own, as when `zipper bench contention` measures.
func (r *run) spread() bool {
	return len(r.p.Zippers) > 1 && (r.p.Rails.Policy == "" || r.p.Rails.Policy == "spread") && r.star()
}

// star reports whether every zipper joins all clusters.
func (r *run) star() bool {
	layout := r.layout()
	return !slices.ContainsFunc(r.p.Zippers, func(z platform.Zipper) bool { return !joins(&z, layout) })
}
