package pattern

import (
	"github.com/leidenzipper/zipper/contention/platform"
	"github.com/leidenzipper/zipper/internal/traffic/trace"
)

// Recorded returns the host of each rank of the job recorded in trace t on platform p, whose
// clusters are identified by name. Each cluster's ranks fill its hosts in order. ok is false if the
// platform lacks a cluster or room for its ranks; then the places of the ranks are not known.
func Recorded(t *trace.Trace, p *platform.Platform) (places []string, ok bool) {
	room := make(map[string][]string)
	for _, c := range p.Clusters {
		for _, h := range c.Hosts.Names {
			for range c.Cores {
				room[c.Name] = append(room[c.Name], h)
			}
		}
	}
	for _, c := range t.Clusters {
		if c.Ranks > len(room[c.Name]) {
			return nil, false
		}
		places = append(places, room[c.Name][:c.Ranks]...)
	}
	return places, true
}
