package platform

import (
	"math/big"

	"github.com/leidenzipper/zipper/contention/sharing"
)

// This file has the limits of a path beside adapters and forwarders: bytes in flight, and
// encryption.

// pairWindow is the largest number of bytes of segments that a pair of processes may have in
// flight, once their window has grown (docs/design/trunk.md).
const pairWindow = 48 << 20

// buffers adds a resource to the current flow for the limit of a connection over a cluster's
// network from the walker's place to the place named at, and moves the walker there. zipper says
// that this is a zipper. With at most W bytes in flight and a round trip T, the rate of a
// connection is W/T (RFC 6349, 3.3.1). For n connections it is n times that.
func (w *walker[T]) buffers(cluster int, at string, zipper bool) {
	c := &w.b.p.Clusters[cluster]
	if c.Buffer.Rat != nil {
		n := 1
		if w.zipper && zipper {
			n = c.Streams
		}
		trip := new(big.Rat).Mul(big.NewRat(2, 1), c.Latency.Rat)
		rate := new(big.Rat).Quo(new(big.Rat).Mul(big.NewRat(int64(n), 1), c.Buffer.Rat), trip)
		w.use(w.b.resource(sharing.Buffers, "buffers "+w.at+">"+at+" over "+c.Name, rate, "", nil, false))
	}
	w.at, w.zipper = at, zipper
}

// window adds a resource to the current flow for the limit of a pair of processes whose path over
// steps is long: pairWindow bytes for each round trip over all networks.
func (w *walker[T]) window(steps []step) {
	trip := new(big.Rat)
	add := func(cluster int) {
		if l := w.b.p.Clusters[cluster].Latency.Rat; l != nil {
			trip.Add(trip, l).Add(trip, l)
		}
	}
	add(steps[0].from)
	for _, s := range steps {
		add(s.to)
	}
	if trip.Cmp(longTrip()) <= 0 {
		return
	}
	rate := new(big.Rat).Quo(big.NewRat(pairWindow, 1), trip)
	w.flow.Uses = append(w.flow.Uses, one[T](w.b.resource(sharing.Buffers, "window "+w.name, rate, "", nil, false)))
}

// seal adds a resource to the current flow for the encryption at place at, where a message begins
// or ends. Each rank of the host has a core, which encrypts and decrypts.
func (w *walker[T]) seal(at place) {
	if at.cluster < 0 || w.b.p.Clusters[at.cluster].Seal.Rat == nil {
		return
	}
	c := &w.b.p.Clusters[at.cluster]
	rate := new(big.Rat).Mul(c.Seal.Rat, big.NewRat(int64(c.Cores), 1))
	w.use(w.b.resource(sharing.Seal, w.b.name(at)+".seal", rate, "", nil, false))
}
