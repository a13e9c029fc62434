package play

import (
	"context"
	"fmt"

	"github.com/leidenzipper/zipper/contention/platform"
	"github.com/leidenzipper/zipper/internal/transport"
	"github.com/leidenzipper/zipper/mmpi/engine"
	"github.com/leidenzipper/zipper/simulation/kernel"
)

// translator returns a zipper whose kernel translates addresses between the clusters of processes a
// and b. It returns nil if there is no such zipper, or if both are in the same cluster, or if one
// is on a zipper node.
func (r *run) translator(a, b *proc) *platform.Zipper {
	if a.cluster < 0 || b.cluster < 0 || a.cluster == b.cluster {
		return nil
	}
	for i := range r.p.Zippers {
		z := &r.p.Zippers[i]
		_, in := z.Ports[r.p.Clusters[a.cluster].Name]
		_, out := z.Ports[r.p.Clusters[b.cluster].Name]
		if in && out && z.Relay == platform.Translated {
			return z
		}
	}
	return nil
}

// directs returns the functions that open the direct links of process p in the job with index job,
// by rank of the peer. The process with the higher rank dials; a nil function means that the peer
// does. The map is nil if there are no direct links.
func (p *proc) directs(job int) map[int]engine.Opener {
	var list map[int]engine.Opener
	for _, o := range p.r.procs {
		z := p.r.translator(p, o)
		if z == nil {
			continue
		}
		door := fmt.Sprintf("door %d: %d from %d", job, min(p.virtual, o.virtual), max(p.virtual, o.virtual))
		if list == nil {
			list = map[int]engine.Opener{}
		}
		list[o.virtual] = nil
		if o.virtual < p.virtual {
			list[o.virtual] = func(ctx context.Context) (transport.Link, error) {
				e, err := p.p.Dial(ctx, door, kernel.Path{Out: p.r.past(p, o, z), In: p.r.past(o, p, z)})
				if err != nil {
					return nil, err
				}
				return e, nil
			}
			continue
		}
		p.p.Listen(door, func(e *kernel.End) {
			p.p.Go(func() {
				if m := p.members[job]; m == nil || m.Engine == nil || !m.Engine.DirectUp(o.virtual, e) {
					e.Close()
				}
			})
		})
	}
	return list
}

// past returns the path of packets from one process to another through zipper z, whose kernel
// translates addresses.
func (r *run) past(from, to *proc, z *platform.Zipper) *kernel.Way {
	key := [3]string{from.host, to.host, z.Name}
	if w := r.ways[key]; w != nil {
		return w
	}
	in, out := &r.p.Clusters[from.cluster], &r.p.Clusters[to.cluster]
	a, b := r.way(from.host, z.Name, in.Name), r.way(z.Name, to.host, out.Name)
	w := &kernel.Way{Lines: append(a.Lines[:len(a.Lines):len(a.Lines)], b.Lines...), Delay: a.Delay + b.Delay,
		Packet: a.Packet, Unsent: a.Unsent, Window: min(a.Window, b.Window)}
	r.ways[key] = w
	return w
}
