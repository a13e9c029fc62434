package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/leidenzipper/zipper/handshake"
	"github.com/leidenzipper/zipper/launch/jobenv"
	joining "github.com/leidenzipper/zipper/rail"
	"github.com/leidenzipper/zipper/transport"
	"github.com/leidenzipper/zipper/wire"
)

// In a job of several hops (clusters and forwarders form a tree) a process joins the forwarders on its own network, and exactly one of its links leads
// to each other cluster. A message of two hops is to both ends the same as one of one hop: envelopes, credit and acknowledgements go end to end.

// hopWays puts the job's forwarders into the identity and gives for each cluster the place in job.Forwarders that leads there.
func hopWays(job jobenv.Job, id *handshake.Identity) ([]int, error) {
	routes, err := jobenv.Routes(job.Layout, job.Zippers)
	if err != nil {
		return nil, err
	}
	index := func(name string) int {
		return slices.IndexFunc(job.Layout, func(c jobenv.Cluster) bool { return c.Name == name })
	}
	for _, z := range job.Zippers {
		var w wire.Zipper
		for _, p := range z.Ports {
			w.Ports = append(w.Ports, wire.Port{Cluster: uint16(index(p.Cluster)), Address: p.Address})
		}
		id.Zippers = append(id.Zippers, w)
	}
	id.Rails = 1
	ways := make([]int, len(job.Layout))
	for to := range ways {
		from := index(job.Cluster)
		if from == to {
			continue
		}
		first := routes.Rails(from, to)
		if ways[to] = slices.Index(job.Here, first[0]); ways[to] < 0 {
			return nil, fmt.Errorf("no forwarder of cluster %s leads to %s", job.Cluster, job.Layout[to].Name)
		}
	}
	return ways, nil
}

// dialHops joins at all forwarders of this cluster; every one is needed.
func dialHops(ctx context.Context, d *joining.Dialer, job jobenv.Job, id handshake.Identity) ([]transport.Link, wire.Layout, error) {
	type answer struct {
		rail   int
		link   transport.Link
		layout wire.Layout
		err    error
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	answers := make(chan answer)
	for i, addr := range job.Forwarders {
		id := id
		id.Here = job.Here[i]
		go func() {
			l, layout, err := d.Dial(ctx, addr, id)
			answers <- answer{i, l, layout, err}
		}()
	}
	links := make([]transport.Link, len(job.Forwarders))
	var layout wire.Layout
	var all error
	for range links {
		a := <-answers
		if a.err != nil {
			cancel() // without it the others are of no use
			if !errors.Is(a.err, context.Canceled) || all == nil {
				all = errors.Join(all, a.err)
			}
			continue
		}
		links[a.rail], layout = a.link, a.layout
	}
	if all != nil {
		for _, l := range links {
			if l != nil {
				l.Close()
			}
		}
		return nil, layout, all
	}
	return links, layout, nil
}
