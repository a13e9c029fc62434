package doctor

import (
	"context"
	"fmt"
	"net"
	"strconv"
	"time"

	"github.com/leidenzipper/zipper/launch"
	"github.com/leidenzipper/zipper/launch/spec"
)

// Host examines this host and, if program is not empty, a program.
func Host(ctx context.Context, program []string) *Report {
	r := &Report{}
	h := Survey(ctx)
	r.libraries(h.Host, h.MPI, "")
	r.host(h)
	for _, name := range program {
		r.program(name, h.MPI)
	}
	return r
}

// Reach examines the path from this host to forwarders elsewhere, such as from a border node to
// those of the other site.
func Reach(ctx context.Context, forwarders []string) *Report {
	r := &Report{}
	p, err := probe(ctx, "", nil, "")
	if err != nil {
		r.add(Fail, "this host", err.Error(), "")
		return r
	}
	defer p.stop()
	var targets []Target
	for _, at := range forwarders {
		targets = append(targets, Target{Address: at})
	}
	answers, err := p.dial(targets)
	if err != nil {
		r.add(Fail, "this host", err.Error(), "")
		return r
	}
	for i, a := range answers {
		r.answered(p, p.Host+" -> forwarder "+targets[i].Address, a, "start it there: zipper forwarder",
			"check the address, the route, and that firewalls let that port in")
	}
	return r
}

// Job examines the hosts of a job's clusters: which of them reach which, and the forwarders. The
// job must be normalized.
func Job(ctx context.Context, job *spec.Job) *Report {
	r := &Report{}
	var ps []*patient
	var halves []*launch.Half // the halves that start on this host
	defer func() {
		for _, p := range ps {
			p.stop()
		}
	}()
	for _, c := range job.Clusters {
		rsh, err := job.LoginTo(c)
		if err == nil {
			var p *patient
			if p, err = probe(ctx, c.Name, rsh, c.ZipperPath()); err == nil {
				ps = append(ps, p)
				if h := r.cluster(ctx, p, c); h != nil {
					halves = append(halves, h)
				}
				continue
			}
		}
		r.add(Fail, "cluster "+c.Name, err.Error(), "")
	}
	r.room(halves)
	here, err := probe(ctx, "", nil, "")
	if err != nil {
		r.add(Fail, "this host", err.Error(), "")
		return r
	}
	defer here.stop()
	for i, p := range ps {
		r.forwarders(job, p, here)
		for k, q := range ps {
			if i != k {
				r.between(p, q)
			}
		}
	}
	r.dual(ctx, job, ps)
	r.gather(job, ps)
	return r
}

// forwarders has the patient connect to each forwarder of the job, or to this host if zipper run
// would start one here.
func (r *Report) forwarders(job *spec.Job, p, here *patient) {
	var targets []Target
	for _, z := range job.Zippers {
		if a := z.AddressFor(p.cluster); a != "" { // other forwarders are on other networks
			targets = append(targets, Target{Address: a})
		}
	}
	own := len(job.Zippers) == 0
	if own {
		for _, c := range job.Clusters {
			if c.Name == p.cluster {
				targets = []Target{{Address: net.JoinHostPort(launch.SeenFrom(c), strconv.Itoa(here.Port)),
					Word: here.Word}}
			}
		}
	}
	answers, err := p.dial(targets)
	if err != nil {
		r.add(Fail, "cluster "+p.cluster, err.Error(), "")
		return
	}
	for i, a := range answers {
		what, advice := "forwarder "+targets[i].Address, "start it there: zipper forwarder"
		if own {
			to, _, _ := net.SplitHostPort(targets[i].Address)
			what = "this host (" + to + "), where zipper run starts a forwarder"
			advice = "open this host's firewall for its own clusters, or run a forwarder elsewhere and name it with --zipper"
		}
		r.answered(p, p.cluster+" -> "+what, a, advice,
			"the address must be the zipper node's on this cluster's own network (addresses: in the job file gives one per cluster); check routes and firewall")
	}
}

// answered judges the answer of a forwarder's address to the patient. refused and silent are the
// advice if the port is closed there, and if nothing answers.
func (r *Report) answered(p *patient, subject string, a Answer, refused, silent string) {
	switch a.Kind {
	case Reached:
		r.add(OK, subject, fmt.Sprintf("%s reaches it (%v)", p.Host, a.Took.Round(10*time.Microsecond)), "")
		// Connecting took one round trip, and the first frame of the forwarder another one.
		for _, look := range []func(*Hello, time.Duration) (detail, advice string){narrow, cools} {
			if detail, advice := look(&p.Hello, a.Took/2); advice != "" {
				r.add(Warn, subject, detail, advice)
			}
		}
	case Refused:
		r.add(Fail, subject, p.Host+": "+a.Detail, refused)
	case Other:
		r.add(Fail, subject, p.Host+": "+a.Detail,
			"check the address: it must be the forwarder's on that host's network")
	case Silent:
		r.add(Fail, subject, p.Host+": "+a.Detail, silent)
	}
}

// between tests whether p's network reaches q's host.
func (r *Report) between(p, q *patient) {
	subject := p.cluster + " -> " + q.cluster
	if p.Stack == q.Stack {
		r.add(OK, subject, "both run on one host; the forwarder joins them over its loopback interface", "")
		return
	}
	var targets []Target
	for _, a := range q.Addresses {
		targets = append(targets, Target{Address: net.JoinHostPort(a.IP(), strconv.Itoa(q.Port)), Word: q.Word})
	}
	answers, err := p.dial(targets)
	if err != nil {
		r.add(Fail, subject, err.Error(), "")
		return
	}
	reached := false
	for i, a := range answers {
		to := fmt.Sprintf("%s (%s, %s)", q.Host, q.Addresses[i].IP(), q.Addresses[i].Interface)
		near := sameNetwork(p.Addresses, q.Addresses[i].IP())
		switch {
		case a.Kind == Reached:
			reached = true
			r.add(OK, subject, p.Host+" reaches "+to+" directly",
				"a shared network joins them; messages between the clusters still take the forwarder")
		case a.Kind == Other || a.Kind == Refused && near != "":
			r.add(Warn, subject, fmt.Sprintf("false reachability: at %s's address %s another host answers %s", q.Host,
				q.Addresses[i].IP(), p.Host),
				"the two networks use the same addresses: harmless for zipped jobs (each MPI stays in its cluster), but never put hosts of both in one host file")
		case near != "":
			r.add(Warn, subject, fmt.Sprintf("false reachability: %s takes %s to be on its own network (%s), but it does not answer",
				p.Host, to, near),
				"the two networks use the same address range: make sure that each cluster's host file names only its own hosts")
		}
	}
	if !reached {
		r.add(OK, subject, fmt.Sprintf("%s does not reach %s: separate networks, messages go %s -> forwarder -> %s",
			p.Host, q.Host, p.cluster, q.cluster), "")
	}
	for _, f := range p.Fabrics {
		for _, g := range q.Fabrics {
			if f.Prefix == g.Prefix && f.Link == "InfiniBand" && g.Link == "InfiniBand" && !reached {
				r.add(Warn, subject, fmt.Sprintf("false reachability: adapters %s on %s and %s on %s have the same subnet prefix %s though the networks are separate",
					f.Device, p.Host, g.Device, q.Host, f.Prefix),
					"give each fabric a subnet prefix of its own in its subnet manager (OpenSM: subnet_prefix), or MPI libraries on a zipper node take them for one")
			}
		}
	}
}

// sameNetwork returns the network of an own interface that ip seems to belong to, or an empty
// string.
func sameNetwork(own []Address, ip string) string {
	for _, a := range own {
		if _, n, err := net.ParseCIDR(a.CIDR); err == nil && n.Contains(net.ParseIP(ip)) {
			return a.Interface + " " + n.String()
		}
	}
	return ""
}
