package forwarder

import (
	"errors"
	"maps"
	"slices"

	"go.uber.org/zap"

	"github.com/leidenzipper/zipper/wire"
)

// A forwarder that was started again knows nothing of the jobs that run over it. Ranks on its
// networks dial it again and join, as if the job began; the other forwarders still run the job.
//
//  1. The end that dials opens a connection with number 0, as for a job that begins: the new
//     forwarder when a rank has joined it (hops.go, reachOut), or the old one, which has been told
//     that the job is not known there (refused; the other end opens the job for it).
//  2. The old one forgets the connections that it had, which are dead, and tells at once all that
//     the new one is to gather through it: who has left, the Joins, those of who has left too, and
//     that all others are ready (anew).
//  3. When the new one sees all ranks it says Ready and its job runs. Then the old one uses the
//     connection as any that takes the place of a lost one (trunk.go), and all ranks send again
//     what is not acknowledged.
//
// Which of the two dials is fixed, and whoever does shows what a rank has shown it. A forwarder
// that was started again when all its ranks had left has nothing to show: it would be waited for in
// vain, and could not gather the job for those who still need it on their way. So the other end of
// a link that is cut dials as well, after a while (instead). It is taken where another forwarder
// has begun the job, and no rank has joined (dialsTo); from then on it opens that link.

var errBegunAnew = errors.New("the other forwarder begins anew")

// anew takes a connection over which the other end gathers, while the job runs here. With f.mu.
func (br *bridge) anew(p *peer) {
	b, t := br.job, &br.trunk
	br.f.log.Info("another forwarder gathers a running job anew", zap.String("job", b.id),
		zap.String("forwarder", br.addr))
	for _, o := range t.coming {
		if o != p {
			o.end(errBegunAnew)
		}
	}
	t.coming = []*peer{p}
	p.bridge, p.number, p.later = br, 0, true
	if old := br.conns; len(old) > 0 {
		br.conns = nil
		for _, o := range old {
			o.end(errBegunAnew)
		}
		t.lost += len(old)
		br.cut(old[0], "the forwarder "+br.addr+" was started again")
	}
	for _, v := range slices.Sorted(maps.Keys(b.left)) {
		p.sendState(wire.RailState{Rank: v, Gone: true, Reason: openedAgain})
	}
	for _, j := range b.hops.joins {
		if br.tellsOf(j) || b.left[rankOf(b.clusters, j)] { // those that have left do not come back there
			_ = p.sendFrame(frame(wire.TypeJoin, j))
		}
	}
	for z := range b.hops.zippers {
		if z != br.zipper { // which says so itself
			_ = p.sendFrame(frame(wire.TypeReady, &wire.Ready{Zipper: uint32(z)}))
		}
	}
}

// hasFailed says why a job that is over has failed; empty: it has not, or is not known. With f.mu.
func (f *Forwarder) hasFailed(j *wire.Join) string {
	for i := len(f.past) - 1; i >= 0; i-- {
		if s := &f.past[i]; s.Job == j.Job && s.key == j.PublicKey {
			return s.Reason
		}
	}
	return ""
}
