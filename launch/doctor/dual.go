package doctor

import (
	"context"
	"fmt"
	"net"
	"slices"
	"strconv"

	"github.com/leidenzipper/zipper/internal/jobenv"
	"github.com/leidenzipper/zipper/launch/spec"
)

// dual judges the addresses at which ranks of a cluster shall take direct links. Each must belong
// to a node on which such ranks run, as far as the doctor can tell without a job. A wrong address
// costs nothing but speed, so there are only warnings.
func (r *Report) dual(ctx context.Context, job *spec.Job, ps []*patient) {
	for _, c := range job.Clusters {
		for _, d := range c.Dual {
			host, _, _ := net.SplitHostPort(d.Address) // the address was parsed, so it has a port
			subject := fmt.Sprintf("cluster %s, dual %s", c.Name, host)
			ips, err := net.DefaultResolver.LookupHost(ctx, host)
			if err != nil {
				r.add(Warn, subject, "this host does not know the address: "+err.Error(),
					"name the zipper node's address on the other cluster's network by its number")
				continue
			}
			for _, p := range ps {
				if p.cluster != c.Name && (d.Cluster == "" || d.Cluster == p.cluster) {
					r.dualAt(job, subject, c.Name, host, ips, ps, p)
				}
			}
		}
	}
}

// dualAt judges an address as seen from p, whose cluster's ranks shall connect to it.
func (r *Report) dualAt(job *spec.Job, subject, cluster, host string, ips []string, ps []*patient, p *patient) {
	loopback := slices.ContainsFunc(ips, func(ip string) bool { return net.ParseIP(ip).IsLoopback() })
	for _, own := range ps {
		if own.cluster != cluster {
			continue
		}
		if slices.ContainsFunc(own.Addresses, func(a Address) bool { return slices.Contains(ips, a.IP()) }) ||
			loopback && own.Stack == p.Stack {
			r.add(OK, subject, fmt.Sprintf("an address of %s, where ranks of %s run", own.Host, cluster), "")
			return
		}
	}
	const nobody = "no rank will listen at this address, and messages go through the forwarder: name the zipper node's address on the network of the other cluster, and have ranks placed on that node"
	if loopback {
		r.add(Warn, subject, fmt.Sprintf("%s cannot connect to another host's loopback address", p.Host), nobody)
		return
	}
	port := strconv.Itoa(jobenv.DefaultPort)
	for _, z := range job.Zippers {
		if _, its, err := net.SplitHostPort(z.AddressFor(p.cluster)); err == nil {
			port = its
			break
		}
	}
	answers, err := p.dial([]Target{{Address: net.JoinHostPort(host, port)}})
	switch {
	case err != nil:
		r.add(Fail, "cluster "+p.cluster, err.Error(), "")
	case answers[0].Kind == Reached:
		r.add(OK, subject, fmt.Sprintf("%s finds a forwarder at port %s there: a zipper node", p.Host, port), "")
	case answers[0].Kind == Silent:
		r.add(Warn, subject, fmt.Sprintf("%s gets no answer there: %s", p.Host, answers[0].Detail), nobody)
	default:
		r.add(Warn, subject, fmt.Sprintf("%s reaches a host there, but neither the one where %s is started nor one with a forwarder at port %s", p.Host, cluster, port),
			"have ranks of "+cluster+" placed on that host, or else "+nobody)
	}
}
