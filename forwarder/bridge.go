package forwarder

import (
	"errors"
	"fmt"
	"slices"
	"sync/atomic"

	"github.com/leidenzipper/zipper/handshake"
	"github.com/leidenzipper/zipper/wire"
)

// bridge is the link to another forwarder for one job of several hops. Frames between ranks come
// and go on it as on a rank's link: the job's table has its first connection for all ranks that lie
// behind it. It may have more (trunk.go). It ends with Bye from both ends over each connection: an
// end says it when all ranks that could send something through it have left.
type bridge struct {
	f       *Forwarder
	job     *job
	zipper  int    // the other end
	network int    // the network that both are on
	addr    string // the other end's, as known on it
	ranks   int    // that lie behind it

	// Guarded by Forwarder.mu.
	conns       []*peer // in use: the first, then those for bulk only; none: it is cut
	said, heard bool    // Bye, over all connections
	theirs      bool    // heard over one
	trunk       trunkState
	dials       bool   // from here
	open        func() // dials the first one, while the job gathers; nil: the other end does
	cert        handshake.Certificate
	lacks, told string // links that the other end lacks, and we, as we have told it (tree.go)
	notices     int    // that came of the former

	blocked atomic.Int64 // nanoseconds for which its connections did not take what there was
}

// first is the connection that carries all but bulk; nil: there is none now.
func (br *bridge) first() *peer {
	if len(br.conns) == 0 {
		return nil
	}
	return br.conns[0]
}

// send gives the other forwarder a frame, if there is a connection now. If it reads none it is
// found dead soon. With f.mu.
func (br *bridge) send(t wire.Type, body wire.Body) {
	if p := br.first(); p != nil {
		_ = p.conn.Send(frame(t, body))
	}
}

// allowed checks a header that comes over the bridge of a running job.
func (br *bridge) allowed(h wire.Header) error {
	if !h.Type.BetweenRanks() {
		switch h.Type {
		// Ready: the same by another way
		case wire.TypeAbort, wire.TypeBye, wire.TypePing, wire.TypePong, wire.TypeCount, wire.TypeReady:
			return nil
		case wire.TypeRailState:
			if br.job.goesOn() {
				return nil
			}
		}
		return fmt.Errorf("%v frame over a link between forwarders", h.Type)
	}
	n := uint32(len(br.job.table))
	if h.Src >= n || br.job.via[h.Src] != br {
		return fmt.Errorf("%v frame with source %d, which is not behind that link", h.Type, h.Src)
	}
	if h.Dst >= n || br.job.via[h.Dst] == br {
		return fmt.Errorf("%v frame for rank %d, which is not here", h.Type, h.Dst)
	}
	return nil
}

// mayTell checks what the other forwarder says of a rank: only whether one behind it can be
// reached.
func (br *bridge) mayTell(s *wire.RailState) error {
	if int64(s.Rank) >= int64(len(br.job.via)) || br.job.via[s.Rank] != br {
		return fmt.Errorf("RailState of rank %d, which is not behind that link", s.Rank)
	}
	return nil
}

// startBridges gives every bridge and the ranks behind it their place in the job that is about to
// run. With Forwarder.mu.
func (j *job) startBridges() {
	h := j.hops
	h.cancel()
	h.staying = len(j.waiting)
	j.via = make([]*bridge, len(j.table))
	for v := range j.table {
		if k := h.next(h.here, j.clusterOf[v]); k >= 0 {
			br := h.bridges[k]
			j.via[v] = br
			j.table[v].Store(br.first().conn)
			br.ranks++
		}
	}
	for _, br := range j.bridges() {
		// One sender may have as much on its way to each of them.
		br.first().conn.Widen(br.ranks)
	}
}

// byesCame reports whether Bye has come over all connections that there are. With f.mu.
func (br *bridge) byesCame() bool {
	return !slices.ContainsFunc(br.conns, func(p *peer) bool { return !p.byeCame })
}

// rankLeft counts a rank here that will not send any more. With Forwarder.mu.
func (j *job) rankLeft() {
	j.hops.staying--
	j.sayBye()
}

// sayBye says Bye on bridges over which nothing more can go: the ranks here have left, and those
// behind bridges that lead to other networks. What comes from a forwarder on the same network never
// goes on to another one there. On one that is cut it is said when that is back, or never (giveUp):
// the other end may have been started again, and cannot gather the job without this one, in a job
// of several rows either. With Forwarder.mu.
func (j *job) sayBye() {
	if j.state != running || j.hops.staying > 0 {
		return
	}
	for _, br := range j.bridges() {
		still := br.said || br.first() == nil
		for _, o := range j.hops.bridges {
			still = still || o.network != br.network && !o.heard
		}
		if still {
			continue
		}
		br.said = true
		if !j.goesOn() {
			br.noMore()
		}
		for _, p := range br.conns {
			p.sayBye()
		}
	}
}

// sayBye says Bye on a connection of a bridge. With f.mu.
func (p *peer) sayBye() {
	p.conn.FinishWith(frame(wire.TypeBye, nil))
	if p.byeCame {
		p.conn.Post(p.conn.FinishNow)
	}
}

// noMore has nothing more be opened for the bridge. With f.mu.
func (br *bridge) noMore() {
	t := &br.trunk
	for _, x := range []timer{t.watch, t.again, t.patience} {
		if x != nil {
			x.Stop()
		}
	}
	for _, p := range t.coming {
		p.end(errNotWanted)
	}
}

// end closes the connections of the bridge. With f.mu.
func (br *bridge) end(cause error) {
	for _, p := range br.conns {
		p.end(cause)
	}
}

var errNotWanted = errors.New("the connection is needed no more")

// wanted reports whether the bridge may still carry something, if only Bye. With f.mu.
func (br *bridge) wanted() bool {
	return br.job.state == running && !(br.said && br.theirs) && br.job.hops.bridges[br.zipper] == br
}

// tellsOf reports whether the other end learns of a rank through us. With f.mu.
func (br *bridge) tellsOf(j *wire.Join) bool {
	h := br.job.hops
	return h.next(br.zipper, br.job.clusterIndex(j.Cluster)) == h.here
}
