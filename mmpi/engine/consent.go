package engine

import (
	"encoding/binary"
	"fmt"
	"maps"
	"slices"

	"github.com/leidenzipper/zipper/mmpi/engine/agree"
	"github.com/leidenzipper/zipper/mmpi/engine/link"
	"github.com/leidenzipper/zipper/mmpi/engine/pt2pt"
)

// consent has the messages among the processes of a job that goes on when a cluster is lost. They
// are control messages:
//
//	agreements   of package agree; the first byte is an agree.Kind
//	revocations  u8 noticeRevoked, u64 context of the communicator
//	losses       u8 noticeLost, u32 index of the cluster; only where several forwarders lead to each
//	             process, because one of them may not have lost the cluster
//
// A revocation goes to all members of the communicator. The first member of each cluster, its
// leader, passes it on to the other leaders and to the members of its cluster, because the sender
// may be lost before it has told all. Losses go the same way.
//
// All methods are called with the engine's lock, from any thread.
type consent struct {
	p2p   *pt2pt.Endpoint
	links *link.Set
	world *World
	fatal func(code Code, status int, reason string)

	ring [noticeRing]notice // receives in the order of posting, which is the order of matching
	head int                // the receive that a message matches next
	sent bool               // whether messages are to be flushed

	machines map[uint64]*agree.Machine     // the agreements by context of the communicator
	early    map[uint64][]earlyMessage     // messages for communicators that are not known here yet
	waiting  map[agreementID]*Cell         // the cells of agreements under way
	shrunk   map[agreementID]agree.Outcome // the results of shrinks
	dropped  []uint64                      // the contexts of dropped communicators that have a machine, in order
}

// agreementID tells the agreements of a process apart.
type agreementID struct {
	context uint64
	number  uint32
}

// notice is a control message that is being received.
type notice struct {
	cell Cell
	buf  [agree.MessageLen]byte
}

type earlyMessage struct {
	from int
	m    agree.Message
}

// These are the first bytes of control messages that belong to no agreement.
const (
	noticeRevoked = 16
	noticeLost    = 17
)

// noticeTag is the tag of these messages. It differs from the tags of Finish and of reports about
// waiting.
const noticeTag = 9

// newConsent returns the consent of a process, which receives messages from then on.
func newConsent(p2p *pt2pt.Endpoint, w *World, fatal func(Code, int, string)) *consent {
	s := &consent{p2p: p2p, links: p2p.Links(), world: w, fatal: fatal, machines: map[uint64]*agree.Machine{}, early: map[uint64][]earlyMessage{},
		waiting: map[agreementID]*Cell{}, shrunk: map[agreementID]agree.Outcome{}}
	for i := range s.ring {
		s.post(&s.ring[i])
	}
	return s
}

// usable returns an error if no cluster may be lost in this job, or if the engine has failed.
func (s *consent) usable() error {
	if s == nil {
		return failure(ErrUnsupported, "the job ends when a cluster is lost: start it with --on-loss continue")
	}
	return s.p2p.Err()
}

// post posts a receive for the next message. If the engine has failed no more messages come.
func (s *consent) post(n *notice) {
	n.cell = Cell{}
	_, _ = s.p2p.Irecv(s.p2p.Control(), KindInternal, n.buf[:], AnySource, noticeTag, &n.cell)
}

// serve handles the messages that have arrived, and flushes those that were sent.
func (s *consent) serve() {
	if s == nil {
		return
	}
	for n := &s.ring[s.head]; n.cell.Done() && s.p2p.Err() == nil; n = &s.ring[s.head] {
		if from, err := int(n.cell.Source), n.cell.Err(); err == nil {
			if err := s.receive(from, n.buf[:n.cell.Bytes]); err != nil {
				s.fatal(ErrLink, 1, fmt.Sprintf("rank %d sent %v", from, err))
			}
		}
		s.post(n)
		s.head = (s.head + 1) % noticeRing
	}
	if s.sent && s.p2p.Err() == nil {
		s.sent = false
		s.links.Flush()
	}
}

// receive handles a message.
func (s *consent) receive(from int, b []byte) error {
	le := binary.LittleEndian
	switch {
	case len(b) == 9 && b[0] == noticeRevoked:
		s.revoke(le.Uint64(b[1:]), false)
		return nil
	case len(b) == 5 && b[0] == noticeLost:
		return s.hear(from, []int{int(le.Uint32(b[1:]))})
	}
	m, err := agree.Parse(b)
	if err == nil {
		err = s.hear(from, m.Lost.Clusters())
	}
	if err != nil || s.p2p.Err() != nil || s.p2p.LostRank(from) {
		return err
	}
	machine := s.machine(m.Context)
	if machine == nil {
		s.early[m.Context] = append(s.early[m.Context], earlyMessage{from, m})
		return nil
	}
	err = machine.Receive(from, m)
	s.take(m.Context, machine)
	return err
}

// hear treats clusters as lost because another process has lost them.
func (s *consent) hear(from int, clusters []int) error {
	for _, c := range clusters {
		if c >= len(s.world.Clusters) {
			return fmt.Errorf("the loss of cluster %d of %d", c, len(s.world.Clusters))
		}
		s.links.Losses.Lose(c, fmt.Sprintf("cluster %s is lost, in the view of virtual rank %d",
			s.world.Clusters[c].Name, from))
	}
	return nil
}

// send sends a message to a rank of the job, unless it is lost.
func (s *consent) send(to int, b []byte) {
	cell := new(Cell) // no call waits for it
	if s.p2p.Isend(s.p2p.Control(), KindInternal, b, to, noticeTag, false, cell) == nil {
		s.sent = true
	}
}

// machine returns the agreements of a communicator, or nil if it is not known.
func (s *consent) machine(context uint64) *agree.Machine {
	if m := s.machines[context]; m != nil {
		return m
	}
	c := s.p2p.CommOf(context)
	if c == nil {
		return nil
	}
	var lost agree.Set
	for cluster := range s.world.Clusters {
		if s.links.Losses.Has(cluster) {
			lost.Add(cluster)
		}
	}
	g := s.group(c)
	if c.Size() <= flatGroup {
		g = s.flat(c)
	}
	m := agree.New(g, context, lost, s.p2p.NewContext)
	s.machines[context] = m
	return m
}

// flat returns the members of a communicator, each as the leader of itself.
func (s *consent) flat(c *Comm) agree.Group {
	g := agree.Group{Me: s.world.Rank, Mine: []int{s.world.Rank}}
	for i := range c.Size() {
		v := c.Virtual(i)
		cluster, _ := s.world.Place(v)
		g.Leaders = append(g.Leaders, agree.Leader{Cluster: cluster, Rank: v})
	}
	slices.SortFunc(g.Leaders, func(a, b agree.Leader) int { return a.Rank - b.Rank })
	return g
}

// group returns the members of a communicator, with the first of each cluster as its leader.
func (s *consent) group(c *Comm) agree.Group {
	g := agree.Group{Me: s.world.Rank}
	mine, end := s.world.Mine()
	first := make([]int, len(s.world.Clusters))
	for i := range first {
		first[i] = -1
	}
	for i := range c.Size() {
		v := c.Virtual(i)
		cluster, _ := s.world.Place(v)
		if first[cluster] < 0 || v < first[cluster] {
			first[cluster] = v
		}
		if v >= mine && v < end {
			g.Mine = append(g.Mine, v)
		}
	}
	slices.Sort(g.Mine)
	for cluster, rank := range first {
		if rank >= 0 {
			g.Leaders = append(g.Leaders, agree.Leader{Cluster: cluster, Rank: rank})
		}
	}
	return g
}

// start votes in the next agreement on a communicator.
func (s *consent) start(c *Comm, flag uint32, shrink bool, cell *Cell) error {
	if err := s.usable(); err != nil {
		return err
	}
	m := s.machine(c.Context())
	var acked agree.Set
	lost, n := c.LostClusters()
	for _, cluster := range lost[:n] {
		acked.Add(cluster)
	}
	cell.Begin()
	id := agreementID{c.Context(), m.Start(flag, shrink, acked)}
	s.waiting[id] = cell
	s.take(id.context, m)
	s.links.FlushPending()
	return nil
}

// take sends the messages of a machine, and completes the agreements that it has decided.
func (s *consent) take(context uint64, m *agree.Machine) {
	out, outcomes := m.Take()
	for _, x := range out {
		s.send(x.To, x.Append(nil))
	}
	for _, o := range outcomes {
		id := agreementID{context, o.Number}
		cell, code := s.waiting[id], OK
		delete(s.waiting, id)
		if o.Shrink {
			s.shrunk[id] = o
		} else if o.Failed {
			code = ErrProcFailed
		}
		cell.Tag, cell.Bytes = int32(o.Flag), int64(o.Number)
		s.p2p.Complete(cell, code)
	}
}

// result returns the result of a shrink: the context of the new communicator, and its ranks in the
// old one.
func (s *consent) result(c *Comm, cell *Cell) (context uint64, ranks []int32, err error) {
	if err := s.usable(); err != nil {
		return 0, nil, err
	}
	o, ok := s.shrunk[agreementID{c.Context(), uint32(cell.Bytes)}]
	if !ok || !cell.Done() {
		return 0, nil, failure(ErrArg, "no shrink of this communicator has ended with this cell")
	}
	for i := range c.Size() {
		if cluster, _ := s.world.Place(c.Virtual(i)); !o.Lost.Has(cluster) {
			ranks = append(ranks, int32(i))
		}
	}
	return o.Fresh, ranks, nil
}

// revoke revokes a communicator here, if it is not revoked already. Then it tells all members if
// this process is the first to revoke it, or those that depend on a leader.
func (s *consent) revoke(context uint64, first bool) {
	if !s.p2p.Revoke(context) {
		return
	}
	if c := s.p2p.CommOf(context); c != nil {
		s.spread(c, first, binary.LittleEndian.AppendUint64([]byte{noticeRevoked}, context))
	}
}

// spread sends a message to all members of a communicator, or passes it on as a leader.
func (s *consent) spread(c *Comm, first bool, b []byte) {
	g := s.group(c)
	switch {
	case first:
		for i := range c.Size() {
			if v := c.Virtual(i); v != g.Me {
				s.send(v, b)
			}
		}
	case g.Me == g.Mine[0]:
		for _, l := range g.Leaders {
			if l.Rank != g.Me {
				s.send(l.Rank, b)
			}
		}
		for _, v := range g.Mine[1:] {
			s.send(v, b)
		}
	}
}

// lost handles the loss of a cluster.
func (s *consent) lost(cluster int) {
	if s == nil {
		return
	}
	for _, context := range slices.Sorted(maps.Keys(s.machines)) {
		m := s.machines[context]
		m.Lose(cluster)
		s.take(context, m)
	}
	if s.links.Losses.Differ() {
		s.spread(s.p2p.Control(), !s.leads(),
			binary.LittleEndian.AppendUint32([]byte{noticeLost}, uint32(cluster)))
	}
}

// leads reports whether this process is the first of its cluster.
func (s *consent) leads() bool {
	first, _ := s.world.Mine()
	return s.world.Rank == first
}

// added handles the messages that arrived for a communicator before it was added.
func (s *consent) added(c *Comm) {
	if s == nil {
		return
	}
	early := s.early[c.Context()]
	delete(s.early, c.Context())
	for _, x := range early {
		m := s.machine(c.Context())
		if err := m.Receive(x.from, x.m); err != nil && !s.p2p.LostRank(x.from) {
			s.fatal(ErrLink, 1, fmt.Sprintf("rank %d sent %v", x.from, err))
			return
		}
		s.take(c.Context(), m)
	}
	if c.Revoked() {
		s.spread(c, false, binary.LittleEndian.AppendUint64([]byte{noticeRevoked}, c.Context()))
	}
}

// outstanding returns the number of a communicator's agreements under way.
func (s *consent) outstanding(c *Comm) (n int) {
	if s == nil {
		return 0
	}
	for id := range s.waiting {
		if id.context == c.Context() {
			n++
		}
	}
	return n
}

// drop handles the end of a communicator. Its decisions are kept for a while, because others may
// ask for them.
func (s *consent) drop(c *Comm) {
	if s == nil {
		return
	}
	maps.DeleteFunc(s.shrunk, func(id agreementID, _ agree.Outcome) bool { return id.context == c.Context() })
	switch m := s.machines[c.Context()]; {
	case m == nil:
	case m.Idle():
		delete(s.machines, c.Context())
	default:
		if s.dropped = append(s.dropped, c.Context()); len(s.dropped) > keptAgreements {
			delete(s.machines, s.dropped[0])
			s.dropped = s.dropped[1:]
		}
	}
}
