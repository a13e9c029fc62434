package doctor

import (
	"fmt"
	"sync"
	"time"

	"github.com/leidenzipper/zipper/internal/jobenv"
	"github.com/leidenzipper/zipper/launch/spec"
)

// Only forwarders can tell whether they reach each other. So a job of one rank in each cluster
// gathers over all of them, as a real job does:
//
//  1. each cluster's probe is given that job (gather) and joins it (join.go);
//  2. the forwarders make their links, or name in their refusal the links that they cannot make;
//  3. every rank sends Bye, and the job has ended well.
//
// In every case the report says which forwarder opens which link, because firewalls have to let it
// in.

// gather has the patients join a job over the job's forwarders, if it is one of several hops.
func (r *Report) gather(job *spec.Job, ps []*patient) {
	share := job.Share(job.Clusters[0].Name)
	if len(share.Zippers) > 0 {
		r.ports(&share)
	}
	if len(share.Zippers) == 0 || len(ps) < len(job.Clusters) {
		return // the report names a cluster without a probe already
	}
	for i := range share.Layout {
		share.Layout[i].Size = 1
	}
	share.ID, share.Order, share.Timeout = "doctor-"+word(), nil, gatherTimeout
	answers, errs := make([][]Answer, len(ps)), make([]error, len(ps))
	var wg sync.WaitGroup
	for i, p := range ps {
		mine := share
		mine.Cluster = p.cluster
		mine.WithZippers(share.Zippers)
		wg.Go(func() { answers[i], errs[i] = p.dial([]Target{{Join: mine.Environ()}}) })
	}
	wg.Wait()
	good := true
	for i, p := range ps {
		subject := "cluster " + p.cluster + " -> all forwarders"
		switch {
		case errs[i] != nil:
			r.add(Fail, subject, errs[i].Error(), "")
		case answers[i][0].Kind != Reached:
			r.add(Fail, subject, answers[i][0].Detail,
				"check addresses, routes and firewalls (the ports are above), and that all forwarders run; zipper doctor "+
					"--to ADDRESS, on the host of a forwarder that dials, says whether it gets there")
		default:
			continue
		}
		good = false
	}
	if good {
		r.add(OK, "forwarders", fmt.Sprintf("a job of all clusters gathers over them (%v)",
			answers[0][0].Took.Round(10*time.Microsecond)), "")
	}
}

// ports reports which forwarder opens which link to another one.
func (r *Report) ports(share *jobenv.Job) {
	links, err := share.Net().Links(share.Zippers)
	if err != nil {
		r.add(Fail, "forwarders", err.Error(), "")
		return
	}
	for _, l := range links {
		r.add(OK, "network "+l.Network, fmt.Sprintf("zipper %d (%v) opens the links to zipper %d, at %s", l.From+1,
			share.Zippers[l.From], l.To+1, l.Address),
			"let connections from the former's host to "+l.Address+" pass; none the other way")
	}
}
