package pt2pt

import (
	"sync/atomic"

	"github.com/leidenzipper/zipper/mmpi/engine/fault"
)

// This file has the state of a job that goes on when a cluster is lost; lost.go says what follows.

// damage is a communicator's state after losses and a revocation.
type damage struct {
	broken  bool        // whether the communicator is revoked, or has members in lost clusters
	revoked atomic.Bool // whether it is revoked; any thread reads it
	lost    []int       // the lost clusters that have members, in the order in which this process learned of them
	acked   int         // the number of these that the program has acknowledged
	leader  uint64      // the context of the communicator whose revocation revokes this one too, or 0 (Follow)
}

// losses is an endpoint's state after losses and revocations.
type losses struct {
	ep *Endpoint
	// onLost is a copy of Config.Lost; nil: the job ends when a cluster is lost.
	onLost func(cluster int, reason string)
	order  []int // the lost clusters, in the order in which this process learned of them

	parked       map[uint64]*Cell // the cells of receives told to their owners (park), by handle
	revokedEarly map[uint64]bool  // the contexts of revoked communicators that are not known here yet
	dead         map[uint64]bool  // the contexts of dropped communicators whose messages are discarded
	interrupts   bool             // whether receives in native MPI are to be cancelled
}

// Revoked reports whether the communicator is revoked. It needs no lock.
func (d *damage) Revoked() bool { return d.revoked.Load() }

// LostClusters returns the lost clusters that have members, in the order in which this process has
// learned of the losses, and the number of them that the program has acknowledged.
func (d *damage) LostClusters() (lost []int, acked int) { return d.lost, d.acked }

// Failure returns the error with which an operation of all members ends: OK if nothing prevents it.
func (d *damage) Failure() fault.Code {
	switch {
	case !d.broken:
		return fault.OK
	case d.revoked.Load():
		return fault.Revoked
	}
	return fault.ProcFailed
}

// drops reports whether messages, those of collectives or others, are discarded because no receive
// takes them any more: all those of a revoked communicator, and those of collectives after a loss.
func (d *damage) drops(collective bool) bool {
	return d.broken && (d.revoked.Load() || collective)
}

// keep records the cell of a receive that was told to its owner, by the receive's handle.
func (l *losses) keep(handle uint64, own *Cell) {
	if l.parked == nil {
		l.parked = map[uint64]*Cell{}
	}
	l.parked[handle] = own
}

// interrupt makes a thread of the program cancel receives in native MPI, and interrupted reports
// whether it has to.
func (l *losses) interrupt() { l.interrupts = true }

func (l *losses) interrupted() bool {
	yes := l.interrupts
	l.interrupts = false
	return yes
}

// forget remembers the context of a dropped communicator to which others may still send, although
// nothing of it is received any more.
func (l *losses) forget(context uint64) {
	if l.dead == nil {
		l.dead = map[uint64]bool{}
	}
	l.dead[context] = true
}
