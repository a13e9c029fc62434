package dial

import (
	"errors"

	"github.com/leidenzipper/zipper/handshake"
	"github.com/leidenzipper/zipper/internal/jobenv"
	"github.com/leidenzipper/zipper/internal/wire"
)

// In a job of several hops networks and forwarders form a tree. A process joins the forwarders on
// its own network, and exactly one of its links leads to each other cluster. For both ends a
// message of two hops is the same as one of one hop: envelopes, credit and acknowledgements go end
// to end.
//
// If there are forwarders side by side, the network is divided into rows (vrank.Rows). Each row is
// a tree by itself, which the forwarders serve as a job of its own. A process has separate links in
// every row, even if two rows share a forwarder, so one link of each row leads to each other
// cluster. These are the rails of that pair, and both ends number the rows in the same way.

// Target is a forwarder to join, and the identity to join with.
type Target struct {
	Address string
	Row     int // row of the forwarder; the links of one row are only useful together
	ID      handshake.Identity
}

// Targets returns the forwarders that a process of the job joins, row by row. id is the process's
// identity; Targets sets those of its fields that concern forwarders. In a job of several hops
// paths has for each cluster the indices of the targets that lead there, one in each row (for the
// own cluster: any). Otherwise paths is nil.
func Targets(job jobenv.Job, id handshake.Identity) (targets []Target, paths [][]int, err error) {
	if len(job.Forwarders) == 0 {
		return nil, nil, errors.New("no forwarder is named")
	}
	if len(job.Zippers) > 0 {
		return hopTargets(job, id)
	}
	id.Rails = len(job.Forwarders)
	for i, a := range job.Forwarders {
		if id.HostKey, err = hostKey(job.HostKeys[a]); err != nil {
			return nil, nil, err
		}
		targets = append(targets, Target{a, i, id})
	}
	return targets, nil, nil
}

// hostKey parses the key that a forwarder must have. "" stands for any key.
func hostKey(s string) (key [wire.PublicKeyLen]byte, err error) {
	if s != "" {
		key, err = wire.ParseHostKey(s)
	}
	return key, err
}

func hopTargets(job jobenv.Job, id handshake.Identity) (links []Target, paths [][]int, err error) {
	rows, routes, err := job.Net().Rows(job.Zippers)
	if err != nil {
		return nil, nil, err
	}
	id.Rails, id.Networks = len(rows), job.Networks
	paths = make([][]int, len(job.Layout))
	for k, row := range rows {
		id := id
		id.Job, id.Zippers = handshake.RowID(job.ID, k), make([]wire.Zipper, len(row))
		for at, i := range row {
			if id.Zippers[at].HostKey, err = hostKey(job.Zippers[i].HostKey); err != nil {
				return nil, nil, err
			}
			for _, p := range job.Zippers[i].Ports {
				port := wire.Port{Network: uint16(job.Net().Index(p.Network)), Address: p.Address}
				id.Zippers[at].Ports = append(id.Zippers[at].Ports, port)
			}
		}
		// begin is the index of the row's first link; place has for each forwarder on this network
		// its index among the row's links.
		begin, place := len(links), map[int]int{}
		for at, i := range row {
			if a := job.Zippers[i].Address(job.Cluster); a != "" {
				id.Here, place[at], id.HostKey = at, len(links), id.Zippers[at].HostKey
				links = append(links, Target{a, k, id})
			}
		}
		from := job.Net().Index(job.Cluster)
		for to := range paths {
			at := begin
			if to != from {
				at = place[routes.Rails(from, to)[0]]
			}
			paths[to] = append(paths[to], at)
		}
	}
	return links, paths, nil
}
