package job

import (
	"fmt"
	"slices"

	"github.com/leidenzipper/zipper/forwarder/action"
	"github.com/leidenzipper/zipper/forwarder/bridge"
	"github.com/leidenzipper/zipper/handshake"
	"github.com/leidenzipper/zipper/internal/wire"
)

// The networks and forwarders of a job of several hops form a tree. Every rank joins the forwarders
// on its own network, and forwarders on the same network have a bridge for the job. Such a job
// gathers as follows:
//
//  1. The Join of the first rank contains the tree and every forwarder's addresses. The forwarder
//     dials those neighbours that vrank.Dials assigns to it and shows them that rank's Join
//     (joinedHere); the other neighbours dial it (Offered).
//  2. Joins are forwarded to the forwarders that the rank does not join itself, so that each gathers
//     the whole job (spread, joinedThere). Notices about missing links are forwarded too (gaps.go).
//  3. A forwarder that has gathered all ranks tells the others with Ready (sees), and starts once all
//     forwarders are ready. Ready goes out on every bridge before the forwarder starts, so no frame
//     of the job overtakes it, and no frame arrives at a forwarder that has not started.
//
// A job that loses a rank or a bridge while it gathers ends for all, because a Join cannot be
// withdrawn. A forwarder that is restarted while a job runs gathers the job again (bridge,
// restart.go).

// hops is the part of a job that gathers its ranks together with other forwarders, if the job has
// several hops.
type hops struct {
	*links
	gathering *gathering
	gaps      *gaps
	// joins has the Joins of all ranks so far, by rank. Forwarders that are restarted need them
	// again.
	joins map[uint32]*wire.Join
	ready []bool // ready says, for each forwarder of the job by index, whether it has gathered all ranks.
	// left has the ranks that departed while the predecessor of this forwarder ran.
	left map[uint32]bool
}

// belongs returns nil if the rank that has sent a Join may join at this forwarder. Otherwise it
// returns the refusal.
func (h *hops) belongs(join *wire.Join) *handshake.Refused {
	if !h.several() || int(join.Here) == h.here && h.next(h.here, h.clusterIndex(join.Cluster)) < 0 {
		return nil
	}
	return handshake.Refusal(wire.RefuseLayout,
		"job %q does not reach this forwarder from cluster %s: are the --zipper addresses right, "+
			"and in the same order in all clusters?", h.id, join.Cluster)
}

// joinedHere sends the Join of a rank that has joined here to the neighbouring forwarders. After
// the first such Join it also dials those that it is to dial.
func (h *hops) joinedHere(join *wire.Join) {
	if !h.several() {
		return
	}
	h.spread(join)
	if h.gaps.dialled {
		return
	}
	h.gaps.dialled = true
	for k := range h.zippers {
		if n, ok := h.neighbour(k); ok && n.dials && !h.linked(k) {
			h.add(k, n.addr, true)
			h.cross(k, bridge.Reach{})
		}
	}
	h.gaps.tell()
}

// spread stores the Join of a rank that is new here, and sends it to those neighbouring forwarders
// that learn of the rank through this one.
func (h *hops) spread(join *wire.Join) {
	h.joins[h.rankOf(join)] = join
	for _, br := range h.list() {
		h.announce(br, join)
	}
}

// announce sends a Join to the forwarder at the other end of a bridge, if that forwarder learns of
// the Join's rank through this one.
func (h *hops) announce(br *bridge.Bridge, join *wire.Join) {
	if h.passesJoinTo(br, join) {
		h.send(br, wire.TypeJoin, join)
	}
}

// passesJoinTo reports whether the forwarder at the other end of a bridge must learn of a Join's
// rank from this forwarder.
func (h *hops) passesJoinTo(br *bridge.Bridge, join *wire.Join) bool {
	return h.next(br.Zipper, h.clusterIndex(join.Cluster)) == h.here
}

// offered accepts the connection in e, which another forwarder has opened, or returns a refusal.
func (h *hops) offered(e *Offered) *handshake.Refused {
	if refused := h.checkOffer(e); refused != nil {
		return refused
	}
	k := int(e.Join.Here)
	h.do(Bridged{Conn: e.Conn, Zipper: k})
	h.opened(e.Conn, k)
	if h.bridges[k] == nil {
		h.add(k, h.name(k), false)
	}
	h.cross(k, bridge.Offered{Conn: e.Conn, Number: e.Number, Link: e.Link})
	return nil
}

// checkOffer returns why the connection in e is refused, or nil: the other forwarder must be a
// neighbour that dials this one, both must number the job's forwarders alike, and the job must
// still need the connection. That is the first one of a job that gathers, or a further one.
func (h *hops) checkOffer(e *Offered) *handshake.Refused {
	if e.Ticket != nil && h.state != Running {
		return handshake.Refusal(wire.RefuseTicket, "%v", e.Ticket)
	}
	if refused := h.gather.Fits(e.Join); refused != nil {
		return refused
	}
	if !h.several() {
		return handshake.Refusal(wire.RefuseLayout, "job %q has no other forwarder", h.id)
	}
	from := int(e.Join.Here)
	_, ok := h.neighbour(from)
	br := h.bridges[from]
	switch {
	case e.Here != h.here || !ok || h.dialsTo(from) || !bridge.ValidNumber(e.Number):
		return handshake.Refusal(wire.RefuseLayout,
			"job %q wants no link between these forwarders: are the --zipper addresses right?", h.id)
	case h.state == Running && (br == nil || !br.Wanted() || !h.survivesLoss() && (br.ByeSent() || e.Number == 0)):
		return handshake.Refusal(wire.RefuseTaken, "job %q needs that link no more", h.id)
	case h.state == Running:
	case h.state != Gathering:
		return handshake.Refusal(wire.RefuseTaken, "job %q is already running: give every run a new job id", h.id)
	case e.Number == 0 && h.linked(from):
		return handshake.Refusal(wire.RefuseTaken, "job %q has a link between these forwarders already", h.id)
	case e.Number > 0 && !h.linked(from):
		return handshake.Refusal(wire.RefuseTaken, "job %q has no link between these forwarders", h.id)
	}
	return nil
}

// dialsTo reports whether this forwarder opens the link to the forwarder with index zipper. While
// no rank has joined here, but the job has a link to a third forwarder, this forwarder has no
// rank's Join to show, and lets the other end dial (bridge, restart.go).
func (h *hops) dialsTo(zipper int) bool {
	if br := h.bridges[zipper]; br != nil {
		return br.Dials
	}
	n, _ := h.neighbour(zipper)
	return n.dials && (h.gaps.dialled || len(h.list()) == 0)
}

// reopens reports whether another forwarder reopens the first connection of a link while the job
// gathers: it notices before this forwarder that the old connection is dead. It has then given up
// the job that it gathered, and gathers it again.
func (h *hops) reopens(join *wire.Join, number int) bool {
	if h.state != Gathering || !h.several() || number > 0 || h.gather.Fits(join) != nil {
		return false
	}
	br := h.bridges[int(join.Here)]
	return br != nil && br.Linked() && !br.Dials
}

// linkedTo tells the forwarder at the other end of a new link what this one knows: the Joins and
// Readys so far, and the missing links.
func (h *hops) linkedTo(br *bridge.Bridge) {
	for _, v := range sorted(h.joins) {
		h.announce(br, h.joins[v])
	}
	for z, ready := range h.ready {
		if ready {
			h.send(br, wire.TypeReady, &wire.Ready{Zipper: uint32(z)})
		}
	}
	h.gaps.tell()
}

// handleFrame handles a frame from another forwarder before the job runs. An error means that the
// frame is malformed or may not be sent.
func (h *hops) handleFrame(br *bridge.Bridge, e *ForwarderFrame) error {
	switch e.Type {
	case wire.TypePing:
		h.send(br, wire.TypePong, nil)
	case wire.TypePong:
		h.cross(br.Zipper, bridge.Pong{Conn: e.Conn, Link: e.Link})
	case wire.TypeJoin:
		join, err := wire.ParseJoin(e.Body)
		if err != nil {
			return err
		}
		kept, err := h.joinedThere(br, &join, int64(len(e.Body)), e.Room)
		e.Room = e.Room && !kept
		return err
	case wire.TypeNotice:
		n, err := wire.ParseNotice(e.Body)
		if err != nil {
			return err
		}
		h.gaps.noteMissing(br.Zipper, &n)
	case wire.TypeRailState:
		return h.handleDeparted(e.Body)
	case wire.TypeLost:
		return h.lostBefore(e.Body)
	case wire.TypeReady:
		r, err := wire.ParseReady(e.Body)
		switch {
		case err != nil:
			return err
		case int(r.Zipper) >= len(h.zippers):
			return fmt.Errorf("forwarder %d of %d", r.Zipper, len(h.zippers))
		// a Ready of this forwarder that others repeat is from before its restart
		case int(r.Zipper) != h.here:
			h.setReady(int(r.Zipper))
		}
	case wire.TypeRefuse:
		r, err := wire.ParseRefuse(e.Body)
		if err != nil {
			return err
		}
		reason := wire.Printable(r.Reason)
		h.gathering.giveUp(r.Code, reason)
		h.do(action.End{Conn: e.Conn, Cause: fmt.Errorf("refused: %s", reason)})
	default:
		return fmt.Errorf("not expected now")
	}
	return nil
}

// joinedThere adds a rank that has joined another forwarder. n is the length of its Join in bytes,
// and room says whether the forwarder's memory had room for it. kept reports that those bytes are
// charged to the job.
func (h *hops) joinedThere(br *bridge.Bridge, join *wire.Join, n int64, room bool) (kept bool, err error) {
	if h.state != Gathering {
		return false, nil
	}
	if refused := h.gather.Fits(join); refused != nil {
		return false, refused
	}
	v := h.rankOf(join)
	left := h.left[v] || h.gathering.refusal(h.clusterIndex(join.Cluster)) != nil
	if left && h.gather.In(int(v)) {
		return false, nil // several forwarders announce such a rank
	}
	if h.next(h.here, h.clusterIndex(join.Cluster)) != br.Zipper && !left {
		return false, fmt.Errorf("cluster %s is not behind that link", join.Cluster)
	}
	if _, refused := h.gather.Add(join); refused != nil {
		return false, refused
	}
	if refused := h.gathering.keep(n, room); refused != nil {
		return false, refused
	}
	h.gathering.learn(join)
	h.spread(join)
	return true, nil
}

// handleDeparted handles another forwarder's report that a rank has departed while the predecessor
// of this forwarder ran, and will not join.
func (h *hops) handleDeparted(body []byte) error {
	s, err := wire.ParseRailState(body)
	if err == nil && (!s.Departed || int64(s.Rank) >= int64(h.gather.Ranks())) {
		err = fmt.Errorf("RailState of rank %d, which cannot have left", s.Rank)
	}
	if err == nil {
		h.left[s.Rank] = true
	}
	return err
}

// lostBefore handles another forwarder's report that a cluster was lost while the predecessor of
// this forwarder ran. Its ranks will not join.
func (h *hops) lostBefore(body []byte) error {
	l, err := wire.ParseLost(body)
	if err == nil && (int(l.Cluster) >= len(h.core.clusters) || !h.outlives()) {
		err = fmt.Errorf("loss of cluster %d", l.Cluster)
	}
	if err == nil {
		h.gathering.doWithout(int(l.Cluster), wire.Printable(l.Reason))
	}
	return err
}

// announceReady announces Ready for this forwarder if it has gathered all ranks, and the links to
// its neighbours are open and tested. A forwarder may be sent frames of the job once it has said
// Ready.
func (h *hops) announceReady() {
	cold := func(br *bridge.Bridge) bool { return !br.Tried() }
	if h.several() && h.state == Gathering && h.gather.Complete() && h.all() && !slices.ContainsFunc(h.list(), cold) {
		h.setReady(h.here)
	}
}

// setReady records that the forwarder with index zipper has gathered all ranks, and tells all
// neighbours so.
func (h *hops) setReady(zipper int) {
	if h.state != Gathering || h.ready[zipper] {
		return
	}
	h.ready[zipper] = true
	for _, br := range h.list() {
		h.send(br, wire.TypeReady, &wire.Ready{Zipper: uint32(zipper)})
	}
}

// complete reports whether all forwarders of the job have gathered all ranks, so that the job can
// run.
func (h *hops) complete() bool {
	return h.gather.Complete() && (!h.several() || !slices.Contains(h.ready, false) && h.all())
}

// sendGathered sends a restarted forwarder, over connection c, all that it needs to gather the job:
// the departed ranks, the Joins of which it learns through this forwarder, and Readys.
func (h *hops) sendGathered(r *ranks, br *bridge.Bridge, c action.Conn) {
	for _, v := range sorted(r.left) {
		r.sendState(c, wire.RailState{Rank: v, Departed: true, Reason: openedAgain})
	}
	for _, v := range sorted(h.joins) {
		join := h.joins[v]
		if h.passesJoinTo(br, join) || r.left[v] || !r.alive(v) { // departed ranks do not join there again
			h.do(action.Send{Conn: c, Frame: frame(wire.TypeJoin, join)})
		}
	}
	for z := range h.zippers {
		if z != br.Zipper { // the forwarder decides that by itself
			h.do(action.Send{Conn: c, Frame: frame(wire.TypeReady, &wire.Ready{Zipper: uint32(z)})})
		}
	}
}
