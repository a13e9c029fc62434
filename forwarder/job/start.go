package job

import (
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/leidenzipper/zipper/forwarder/action"
	"github.com/leidenzipper/zipper/forwarder/bridge"
)

// How a complete job starts:
//
//  1. Its layout is made. If it is too long for a frame all ranks are refused.
//  2. Every rank is sent its Layout (Start), then every connection gets its route (Route, Run). The
//     forwarder does so before another loop reads frames of the job, so no frame overtakes a
//     Layout.
//  3. The ranks are offered ways that the kernel opens (ways.go).

// start makes the job run, because the last Join has arrived: it lets the waiting ranks in and
// begins the trunks to other forwarders.
func (j *Job) start() {
	layout, refused := j.gather.Layout()
	if refused != nil {
		j.gathering.giveUp(refused.Code, refused.Reason)
		return
	}
	if !j.to(Running) {
		return
	}
	j.ranks.fill(layout)
	j.disarm(action.Timer{Kind: action.Gathering})
	j.disarm(action.Timer{Kind: action.Notice})
	j.started = j.now
	places, bridges := j.gathering.inOrder(), j.links.list()
	s := Start{Layout: j.ranks.layout, Via: j.ranks.via, Hosts: j.ranks.hosts, ClusterOf: j.ranks.clusterOf,
		Links: len(places) + len(bridges)}
	for _, p := range places {
		s.Entries = append(s.Entries, Entry{p.conn, uint32(p.rank), j.ranks.namesakes[j.ranks.hosts[p.rank]]})
	}
	j.do(s)
	j.ranks.remaining = len(places)
	for _, p := range places {
		j.ranks.enter(p.conn, p.link, uint32(p.rank))
	}
	for _, br := range bridges {
		for _, v := range j.ranks.behind(br.Zipper) {
			j.ranks.route(v, br.First())
		}
	}
	for _, p := range places { // after all routes, because its frames are relayed from here on
		j.do(Run{Conn: p.conn, Rank: uint32(p.rank)})
		j.ways.offer(uint32(p.rank), p.conn, p.endpoint)
	}
	j.gathering.places = nil
	for _, br := range bridges {
		j.ranks.use(br, br.First())
		j.cross(br.Zipper, bridge.Begin{DialForPeer: j.canDialForPeer(br)})
	}
	j.announceDeparted()
	j.log(zapcore.InfoLevel, "job runs", zap.Int("ranks", len(j.ranks.hosts)),
		zap.Duration("gathered_in", j.started.Sub(j.gathering.created)), zap.Strings("libraries", j.ranks.layout.Libraries),
		zap.Strings("origins", j.Origins()))
}

// canDialForPeer reports whether this end of a bridge can dial although that is the other end's
// part: it has a rank's Join to show, and the other end listens.
func (j *Job) canDialForPeer(br *bridge.Bridge) bool {
	n, ok := j.links.neighbour(br.Zipper)
	return j.gaps.dialled && ok && n.addr != ""
}

// announceDeparted tells the ranks here, and the forwarders that reach others through here, which
// ranks have left, and which clusters were lost, before the job started here. This forwarder's
// predecessor may not have passed that on.
func (j *Job) announceDeparted() {
	for _, v := range sorted(j.hops.left) {
		j.ranks.unsure = true
		network := j.ranks.clusterOf[v]
		if !j.ranks.here(v) {
			network = j.links.network(j.links.bridges[j.ranks.via[v]])
		}
		j.ranks.markLeft(v, network)
	}
	for _, d := range j.gathering.lost {
		j.deaths.lose(d.Cluster, d.Reason, -1)
	}
}
