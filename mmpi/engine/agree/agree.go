// Package agree is the agreement among the processes of a communicator when clusters may be lost
// meanwhile. It does no I/O: a Machine is told of votes, messages and losses, and returns the
// messages to send.
//
// The first member of each cluster is its leader, and the leader of the first cluster that is not
// lost is the coordinator. A small group may do without this step, and take every member as the
// leader of itself: then an agreement takes one way to the coordinator and one back.
//
//  1. Each member gives its vote to its leader, and each leader the sum of them to the coordinator.
//  2. The coordinator decides when it has the votes of all clusters that are not lost. It sends the
//     decision to the leaders, which pass it on to their members.
//  3. When the coordinator is lost, the leaders vote again, for the next one. A leader that has the
//     decision of a former coordinator may have nothing under way any more. So a coordinator that
//     is not the first one asks for it, and adopts it.
//
// All processes that are not lost decide the same. A coordinator needs the vote of each cluster
// that is not lost. A leader votes for a coordinator only when all former ones are lost in its
// view, and takes no message from them any more. So it either has their decision by then, and sends
// that in place of a vote, or never takes it. The caller must therefore stop passing on the
// messages of a lost cluster when it reports the loss, and must report the losses that a message
// names (Ballot.Lost) before it passes on that message.
package agree

import (
	"fmt"
	"maps"
	"slices"
)

// Leader is a process that votes for some members, all of one cluster.
type Leader struct{ Cluster, Rank int }

// Group has the members of a communicator, by their ranks in the job.
type Group struct {
	Me      int      // this process
	Mine    []int    // members that have this process's leader, in ascending order; the first is the leader
	Leaders []Leader // leaders in the order in which they coordinate
}

// Envelope is a message and the rank in the job that it is for.
type Envelope struct {
	To int
	Message
}

// Outcome is a decision that this process has waited for.
type Outcome struct {
	Number uint32
	Ballot
	// Failed says that a cluster with members is lost and not all voters have acknowledged that.
	Failed bool
}

// Machine has the agreements of one communicator in one process. It is not safe for concurrent use.
type Machine struct {
	group   Group
	context uint64
	fresh   func() uint64 // returns a context that no communicator has had
	mine    int           // index of this process's leader in Group.Leaders
	index   map[int]int   // index in Group.Leaders of each leader, by rank

	lost   Set
	next   uint32 // number of this process's next agreement
	known  uint32 // number of agreements, from the first on, that are decided here
	rounds map[uint32]*round

	out      []Envelope
	outcomes []Outcome
}

// round is one agreement.
type round struct {
	started  bool           // this process has voted
	voted    int            // number of members in Group.Mine that have voted, at their leader
	own      Ballot         // sum of their votes
	to       int            // coordinator that has got their vote, an index in Group.Leaders; -1: none
	votes    map[int]Ballot // votes of leaders at the coordinator, by index in Group.Leaders
	decision *Ballot        // nil: not decided here
}

// New returns the Machine of a process for the communicator with a context. fresh returns a context
// that no communicator has had.
func New(g Group, context uint64, lost Set, fresh func() uint64) *Machine {
	m := &Machine{group: g, context: context, fresh: fresh, lost: lost, rounds: map[uint32]*round{}, index: map[int]int{}}
	for i, l := range g.Leaders {
		m.index[l.Rank] = i
	}
	m.mine = m.index[g.Mine[0]]
	return m
}

// leads reports whether this process is a leader.
func (m *Machine) leads() bool { return m.group.Me == m.group.Mine[0] }

// coordinator returns the index in Group.Leaders of the coordinator.
func (m *Machine) coordinator() int {
	return slices.IndexFunc(m.group.Leaders, func(l Leader) bool { return !m.lost.Has(l.Cluster) })
}

// Idle reports whether no other process can need a decision of this process any more.
func (m *Machine) Idle() bool { return len(m.rounds) == 0 }

// Take returns the messages to be sent, in order, and the decisions that this process has waited
// for.
func (m *Machine) Take() (out []Envelope, outcomes []Outcome) {
	out, outcomes = m.out, m.outcomes
	m.out, m.outcomes = nil, nil
	return out, outcomes
}

// Start votes in the next agreement and returns its number. acked has the clusters whose losses
// this process has acknowledged.
func (m *Machine) Start(flag uint32, shrink bool, acked Set) (number uint32) {
	number = m.next
	m.next++
	r := m.round(number)
	r.started = true
	vote := Ballot{Shrink: shrink, Flag: flag, Done: m.known, Lost: m.lost, Acked: acked}
	if m.leads() {
		m.count(number, r, vote)
	} else {
		m.send(m.group.Mine[0], Vote, number, vote)
	}
	return number
}

func (m *Machine) round(number uint32) *round {
	r := m.rounds[number]
	if r == nil {
		r = &round{to: -1, votes: map[int]Ballot{}}
		m.rounds[number] = r
	}
	return r
}

func (m *Machine) send(to int, k Kind, number uint32, b Ballot) {
	m.out = append(m.out, Envelope{to, Message{Kind: k, Number: number, Context: m.context, Ballot: b}})
}

// Receive handles a message from a rank. An error means that no process sends it.
func (m *Machine) Receive(from int, x Message) error {
	if x.Number-m.known > maxAhead && x.Number >= m.known {
		return fmt.Errorf("agree: agreement %d while %d are decided", x.Number, m.known)
	}
	if m.forgotten(x.Number) {
		return nil
	}
	r := m.round(x.Number)
	leader, leads := m.index[from]
	_, member := slices.BinarySearch(m.group.Mine, from)
	switch {
	case x.Kind == Decision && (leads || member):
		m.adopt(x.Number, x.Ballot)
	case x.Kind == Vote && member && m.leads():
		m.count(x.Number, r, x.Ballot)
	case !leads || leader == m.mine || !m.leads():
		return fmt.Errorf("agree: a message of kind %d from rank %d", x.Kind, from)
	case r.decision != nil:
		m.send(from, Decision, x.Number, *r.decision)
	case x.Kind == Vote:
		r.votes[leader] = x.Ballot
		m.decide(x.Number, r)
	}
	return nil
}

// forgotten reports whether all clusters have the decision of an agreement, so that it was dropped.
func (m *Machine) forgotten(number uint32) bool { return number < m.known && m.rounds[number] == nil }

// count adds the vote of a member at its leader.
func (m *Machine) count(number uint32, r *round, vote Ballot) {
	if r.voted++; r.voted == 1 {
		r.own = vote
	} else {
		r.own.join(vote)
	}
	m.vote(number, r)
}

// ready reports whether all members have voted, at their leader.
func (m *Machine) ready(r *round) bool { return r.voted == len(m.group.Mine) && r.decision == nil }

// vote gives the members' vote to the coordinator, unless it has it. The coordinator keeps it, and
// asks the others if it has become one by a loss.
func (m *Machine) vote(number uint32, r *round) {
	if !m.ready(r) {
		return
	}
	to := m.coordinator()
	if to != r.to {
		r.to = to
		r.own.Done = m.known
		r.own.Lost = r.own.Lost.With(m.lost)
		if to != m.mine {
			m.send(m.group.Leaders[to].Rank, Vote, number, r.own)
			return
		}
		r.votes[to] = r.own
		m.ask(number, r)
	}
	m.decide(number, r)
}

// ask asks the other leaders for a decision of a coordinator that is lost.
func (m *Machine) ask(number uint32, r *round) {
	if m.mine == 0 {
		return
	}
	for i, l := range m.group.Leaders {
		if _, voted := r.votes[i]; !voted && !m.lost.Has(l.Cluster) {
			m.send(l.Rank, Ask, number, Ballot{Lost: m.lost})
		}
	}
}

// decide decides if this process is the coordinator and has all votes.
func (m *Machine) decide(number uint32, r *round) {
	if !m.ready(r) || m.coordinator() != m.mine {
		return
	}
	d := r.votes[m.mine]
	for i, l := range m.group.Leaders {
		v, voted := r.votes[i]
		if !voted && !m.lost.Has(l.Cluster) {
			return
		}
		if voted {
			d.join(v)
		}
	}
	d.Lost = d.Lost.With(m.lost)
	if d.Shrink {
		d.Fresh = m.fresh()
	}
	m.adopt(number, d)
}

// adopt takes a decision, unless it has one. It passes it on to its members, and to the leaders
// that have given it their votes as the coordinator.
func (m *Machine) adopt(number uint32, d Ballot) {
	r := m.round(number)
	if r.decision != nil {
		return
	}
	r.decision = &d
	for i, l := range m.group.Leaders {
		if _, voted := r.votes[i]; voted && i != m.mine && !m.lost.Has(l.Cluster) {
			m.send(l.Rank, Decision, number, d)
		}
	}
	r.votes = nil
	if m.leads() {
		for _, rank := range m.group.Mine[1:] {
			m.send(rank, Decision, number, d)
		}
	}
	if r.started {
		m.outcomes = append(m.outcomes, m.outcome(number, d))
	}
	for x := m.rounds[m.known]; x != nil && x.decision != nil; x = m.rounds[m.known] {
		m.known++
	}
	needed := m.known // a member that is no leader is never asked
	if m.leads() {
		needed = min(d.Done, m.known)
	}
	maps.DeleteFunc(m.rounds, func(n uint32, _ *round) bool { return n < needed })
}

func (m *Machine) outcome(number uint32, d Ballot) Outcome {
	o := Outcome{Number: number, Ballot: d}
	for _, l := range m.group.Leaders {
		o.Failed = o.Failed || d.Lost.Has(l.Cluster) && !d.Acked.Has(l.Cluster)
	}
	return o
}

// Lose reports that a cluster, not this process's own, is lost. No message of it may be passed on
// to Receive afterwards.
func (m *Machine) Lose(cluster int) {
	m.lost.Add(cluster)
	if !m.leads() {
		return
	}
	for _, number := range slices.Sorted(maps.Keys(m.rounds)) {
		if r := m.rounds[number]; r != nil {
			m.vote(number, r)
		}
	}
}
