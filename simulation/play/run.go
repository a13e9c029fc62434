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

// run is the state of one run.
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
	in         int           // number of members that have joined
	members    int           // number of members that are to join
	begin      time.Duration // earliest start of the first message
	left       int           // number of messages that have not arrived
	moved      time.Duration // time of the last progress
	err        error
	done       []string // descriptions of the faults so far
	used       map[string]time.Duration
	whenIn     func() // called when all members have joined
}

// fail ends the run with an error.
func (r *run) fail(err error) {
	if r.err == nil {
		r.err = err
	}
}

// layout returns the clusters that have processes.
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

// port returns a zipper's address on a cluster's network.
func port(zipper, cluster string) string { return zipper + "/" + cluster }

// address splits an address from port into the names of the zipper and the cluster.
func (r *run) address(addr string) (zipper, cluster string) {
	zipper, cluster, _ = strings.Cut(addr, "/")
	return zipper, cluster
}

// joins reports whether a zipper has a port on each of the clusters.
func joins(z *platform.Zipper, list []jobenv.Cluster) bool {
	return !slices.ContainsFunc(list, func(c jobenv.Cluster) bool { _, ok := z.Ports[c.Name]; return !ok })
}

// spread reports whether each pair of hosts uses a single zipper. Then each zipper has a job of its
// own, as in the measurements of `zipper bench contention`.
func (r *run) spread() bool {
	return len(r.p.Zippers) > 1 && (r.p.Rails.Policy == "" || r.p.Rails.Policy == "spread") && r.star()
}

// star reports whether every zipper has a port on all clusters.
func (r *run) star() bool {
	layout := r.layout()
	return !slices.ContainsFunc(r.p.Zippers, func(z platform.Zipper) bool { return !joins(&z, layout) })
}
