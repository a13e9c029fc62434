package job

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/leidenzipper/zipper/forwarder/action"
	"github.com/leidenzipper/zipper/forwarder/bridge"
	"github.com/leidenzipper/zipper/handshake"
	"github.com/leidenzipper/zipper/internal/wire"
)

// A job of the kind continue (handshake.SettingOnLoss) goes on when a cluster is lost. Where a job
// of the kind end fails because of a rank, a half or a bridge, this job loses clusters:
//
//  1. The cluster is added to the set of lost clusters (core.dead), which only grows.
//  2. Its ranks lose their routes, and their links get Abort with the reason. Later Joins of the
//     cluster are refused with it (again in loss.go, joined in handle.go).
//  3. All other ranks here, and the other forwarders, get Lost. A rank or a forwarder that comes back
//     gets all Losts again.
//
// A bridge that stays cut has two sides. The side with the first cluster that is not lost goes on
// without the clusters of the other side, which ends. With --quorum both, either side goes on.
//
// In a job over several forwarders side by side a cluster is lost at one of them. Its processes may
// go on over the others, so their links are closed rather than aborted. A rank that takes a cluster
// as lost tells the other forwarders.

// deaths decides which clusters are lost. In a job of the kind end it fails the job.
type deaths struct {
	*core
	ranks  *ranks
	links  *links
	ending *ending
}

// sendAll sends all losses over a connection.
func (d *deaths) sendAll(c action.Conn) {
	for i := range d.dead {
		d.send(c, i)
	}
}

// send sends a loss, the one with that index, over a connection.
func (d *deaths) send(c action.Conn, i int) {
	death := &d.dead[i]
	d.do(action.Send{Conn: c, Frame: frame(wire.TypeLost, &wire.Lost{Number: d.ranks.statesSent.next(c),
		Cluster: uint16(death.Cluster), Epoch: uint32(i + 1), Reason: death.Reason})})
}

// ofRank handles the loss of rank v for a reason: its cluster is lost, or the job fails. In a job
// that fails, all connections except cause get Abort.
func (d *deaths) ofRank(v uint32, reason string, cause action.Conn) {
	switch {
	case !d.outlives():
		d.ending.fail(v, reason, cause)
	case d.alive(v):
		d.ranks.detach(v, reason)
		d.lose(d.ranks.clusterOf[v], reason, -1)
	}
}

// ofCluster handles the loss of a cluster for a reason: the cluster is lost, or the job fails.
func (d *deaths) ofCluster(cluster int, reason string) {
	if d.outlives() {
		d.lose(cluster, reason, -1)
	} else {
		d.ending.fail(wire.Nobody, reason, 0)
	}
}

// lose adds a cluster to the lost ones, unless it is one of them. why is a clause for users. from
// is the forwarder that has reported the loss, or -1.
func (d *deaths) lose(cluster int, why string, from int) {
	r := d.ranks
	if d.state != Running || d.death(cluster) != nil {
		return
	}
	name := d.clusters[cluster].Name
	if !strings.HasPrefix(why, "cluster "+name+" ") {
		why = fmt.Sprintf("cluster %s is lost: %s", name, why)
	}
	d.dead = append(d.dead, Death{cluster, d.now, why})
	d.log(zapcore.ErrorLevel, "cluster lost; the job goes on", zap.String("cluster", name), zap.String("reason", why))
	for v, of := range r.clusterOf {
		if of == cluster {
			d.cutOff(uint32(v), why)
		}
	}
	if !slices.ContainsFunc(d.clusters, func(c wire.Cluster) bool { return d.death(d.clusterIndex(c.Name)) == nil }) {
		d.ending.fail(wire.Nobody, why, 0)
		return
	}
	last := len(d.dead) - 1
	for v, c := range r.routes {
		if c != 0 && r.here(uint32(v)) {
			d.send(c, last)
		}
	}
	for _, br := range d.links.list() {
		if c := br.First(); c != 0 && br.Zipper != from && !br.ByeSent() {
			d.send(c, last)
		}
	}
}

// cutOff takes rank v of a lost cluster out of the job, and ends its link if it is here.
func (d *deaths) cutOff(v uint32, why string) {
	switch c := d.ranks.takeOut(v); {
	case c == 0:
	case d.gather.Rails() > 1:
		d.do(action.End{Conn: c, Cause: errors.New(why)})
	default:
		d.do(action.Abort{Conn: c, Frame: abortFrame(1, wire.Nobody, why)})
	}
}

// halfEnded handles a launcher's report that its half, the processes of a cluster, has ended for a
// reason. A cluster whose ranks have all left is not lost.
func (d *deaths) halfEnded(cluster int, reason string) {
	for v, of := range d.ranks.clusterOf {
		if of == cluster && !d.ranks.left[uint32(v)] {
			d.lose(cluster, reason, -1)
			return
		}
	}
}

// handleReport handles the report of another forwarder, or of a rank if zipper is -1, that a
// cluster is lost. Only jobs of the kind continue get such reports.
func (d *deaths) handleReport(zipper int, l *wire.Lost) {
	d.lose(int(l.Cluster), l.Reason, zipper)
}

// bridgeLost handles the permanent loss of a bridge, for a reason: in a job of the kind continue
// one side of the bridge goes on, or both do. conn, if not 0, is its lost connection.
func (d *deaths) bridgeLost(br *bridge.Bridge, reason string, conn action.Conn) {
	if !d.outlives() {
		d.ending.fail(wire.Nobody, reason, conn)
		return
	}
	if d.state != Running {
		return
	}
	d.links.cut(br.Zipper, errors.New(reason))
	d.cross(br.Zipper, bridge.Stop{})
	here, beyond := d.sides(br)
	first := slices.IndexFunc(d.clusters, func(c wire.Cluster) bool {
		i := d.clusterIndex(c.Name)
		return d.death(i) == nil && (slices.Contains(here, i) || slices.Contains(beyond, i))
	})
	if d.gather.BothSidesGoOn() || !slices.Contains(beyond, first) {
		d.loseAll(beyond, reason, br.Zipper)
		return
	}
	reason = fmt.Sprintf("%s; the side with cluster %s goes on without this one (--quorum)", reason, d.clusters[first].Name)
	if d.gather.Rails() == 1 && len(here)+len(beyond) == len(d.clusters) {
		d.ending.fail(wire.Nobody, reason, conn)
		return
	}
	for _, c := range []action.Conn{conn, br.First()} { // either may have the routes
		d.ranks.severed(br, &bridge.Severed{From: c, Reason: reason})
	}
	d.loseAll(here, reason, br.Zipper)
}

// sides returns the clusters on this side of a bridge and those beyond it. A cluster whose network
// the bridge is on has links to the forwarders at both ends, and is on neither side.
func (d *deaths) sides(br *bridge.Bridge) (here, beyond []int) {
	shared := d.links.network(br)
	for i := range d.clusters {
		switch {
		case i == shared:
		case d.links.next(d.links.here, i) == br.Zipper:
			beyond = append(beyond, i)
		default:
			here = append(here, i)
		}
	}
	return here, beyond
}

// loseAll adds clusters to the lost ones, as lose does.
func (d *deaths) loseAll(clusters []int, why string, from int) {
	for _, i := range clusters {
		d.lose(i, why, from)
	}
}

// forget ends the bridges that are cut and that no rank needs, because all clusters behind them are
// lost. They are not waited for. A cluster whose network a bridge is on needs the forwarder at the
// other end if it has several ranks, which may send to each other over that forwarder.
func (d *deaths) forget() {
	if len(d.dead) == 0 {
		return
	}
	lives := func(i int) bool { return d.death(i) == nil }
	for _, br := range d.links.list() {
		shared := d.links.network(br)
		needed := shared < len(d.clusters) && lives(shared) && d.clusters[shared].Size > 1
		if _, beyond := d.sides(br); br.First() == 0 && !needed && !slices.ContainsFunc(beyond, lives) {
			d.cross(br.Zipper, bridge.Stop{})
		}
	}
}

// refusal returns the refusal of a process of a lost cluster, or nil if the cluster is not lost.
func (d *deaths) refusal(cluster int) *handshake.Refused {
	if death := d.death(cluster); death != nil {
		return handshake.Refusal(wire.RefuseHalf, "job %q goes on without this cluster: %s", d.id, death.Reason)
	}
	return nil
}

// refusalOfBridge returns the refusal of a connection from another forwarder if the job goes on
// without that forwarder and the clusters behind it; else nil.
func (d *deaths) refusalOfBridge(zipper int) *handshake.Refused {
	br := d.links.bridges[zipper]
	if d.state != Running || br == nil || br.State() != bridge.Over {
		return nil
	}
	_, beyond := d.sides(br)
	for _, i := range beyond {
		if death := d.death(i); death != nil {
			return handshake.Refusal(wire.RefuseJob, "job %q goes on without it: %s", d.id, death.Reason)
		}
	}
	return nil
}

// stops ends the running job here because the forwarder shuts down. In a job of several hops the
// clusters that have links to this forwarder only are lost, and the others go on. It reports
// whether it has done so.
func (d *deaths) stops(reason string) bool {
	if !d.outlives() || !d.links.several() || d.state != Running {
		return false
	}
	for i := range d.clusters {
		shared := slices.ContainsFunc(d.links.list(), func(br *bridge.Bridge) bool { return d.links.network(br) == i })
		if d.links.next(d.links.here, i) < 0 && !shared {
			d.lose(i, reason, -1)
		}
	}
	if d.state != Running || !d.finish(Ending, result{1, reason}) {
		return true
	}
	for _, br := range d.links.list() {
		d.links.cut(br.Zipper, errors.New(reason))
	}
	for v, c := range d.ranks.routes {
		if d.ranks.unroute(uint32(v), c) && d.ranks.here(uint32(v)) {
			d.do(action.End{Conn: c, Cause: errors.New(reason)})
		}
	}
	return true
}
