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
	world    process.World    // environment that forwarders and members of jobs share
	messages []message        // messages of the run, in the order of the caller
	procs    []*proc          // processes that send or receive, by rank once they have one
	byRank   map[int]*proc    // processes by the rank that messages name
	byHost   map[string]*proc // processes by host, where messages are between hosts
	jobs     []*simJob        // jobs that the processes join
	// forwarders has the forwarders, one for each zipper of the platform, in its order.
	forwarders []*process.Forwarder
	ends       []*kernel.End // dialling end of each connection to a forwarder
	in         int           // number of processes that have joined all their jobs
	members    int           // number of processes that are to join
	begin      time.Duration // earliest start of the first message
	left       int           // number of messages that have not arrived
	moved      time.Duration // virtual time of the last progress
	err        error         // first error, which ends the run; nil if there is none
	done       []string      // descriptions of the faults so far
	// used has the time for which each line and each host's processors were in use before the
	// first message, by name.
	used     map[string]time.Duration
	onJoined func() // called when all processes have joined
}

// fail ends the run with err, unless it has failed already.
func (r *run) fail(err error) {
	if r.err == nil {
		r.err = err
	}
}

// layout returns the clusters that have processes, each with its number of processes, in the order
// of the platform.
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

// port returns the address of a zipper on the network of a cluster: "zipper/cluster".
func port(zipper, cluster string) string { return zipper + "/" + cluster }

// address splits an address that port has returned into the names of the zipper and the cluster.
func (r *run) address(addr string) (zipper, cluster string) {
	zipper, cluster, _ = strings.Cut(addr, "/")
	return zipper, cluster
}

// joins reports whether zipper z has a port on each of the clusters in list.
func joins(z *platform.Zipper, list []jobenv.Cluster) bool {
	return !slices.ContainsFunc(list, func(c jobenv.Cluster) bool { _, ok := z.Ports[c.Name]; return !ok })
}

// spread reports whether each pair of hosts uses a single zipper. Then each zipper has a job of its
// own, as in the measurements of `zipper bench contention`.
func (r *run) spread() bool {
	return len(r.p.Zippers) > 1 && (r.p.Rails.Policy == "" || r.p.Rails.Policy == "spread") && r.star()
}

// star reports whether every zipper has a port on all clusters that have processes.
func (r *run) star() bool {
	layout := r.layout()
	return !slices.ContainsFunc(r.p.Zippers, func(z platform.Zipper) bool { return !joins(&z, layout) })
}
