package platform

import (
	"math/big"

	"github.com/leidenzipper/zipper/contention/sharing"
)

// What bounds a path beside adapters and forwarders: what may be on its way, and sealing.

// pairWindow is the bytes of segments that a pair of processes may have on their way at most, once
// their window has grown (docs/design/trunk.md).
const pairWindow = 48 << 20

// buffers bounds a connection's rate, over a network that the path leaves at a place: with W bytes
// on their way at most, and a round trip T, it is W/T (RFC 6349, 3.3.1), and of n connections n
// times that.
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

// window bounds the rate of a pair over all networks of a long path, in the same way.
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
	if trip.Cmp(farTrip()) <= 0 {
		return
	}
	rate := new(big.Rat).Quo(big.NewRat(pairWindow, 1), trip)
	w.flow.Uses = append(w.flow.Uses, one[T](w.b.resource(sharing.Buffers, "window "+w.name, rate, "", nil, false)))
}

// seal is what sealing costs a host where a message begins or ends: each of its ranks has a core,
// which does both.
func (w *walker[T]) seal(at place) {
	if at.cluster < 0 || w.b.p.Clusters[at.cluster].Seal.Rat == nil {
		return
	}
	c := &w.b.p.Clusters[at.cluster]
	rate := new(big.Rat).Mul(c.Seal.Rat, big.NewRat(int64(c.Cores), 1))
	w.use(w.b.resource(sharing.Seal, w.b.name(at)+".seal", rate, "", nil, false))
}
