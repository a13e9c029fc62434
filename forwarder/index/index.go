// Package index finds the jobs of a forwarder. They are told apart by id and key, so that nobody
// can take an id from others.
package index

import (
	"fmt"
	"maps"
	"slices"

	"github.com/leidenzipper/zipper/handshake"
	"github.com/leidenzipper/zipper/internal/wire"
)

// Job is what the index has to know of a job.
type Job interface {
	comparable

	ID() string
	Key() [wire.PublicKeyLen]byte
	User() string    // User is whom the ticket of its first Join names; empty: none was demanded.
	Gathering() bool // Gathering reports whether the job gathers, as of its last event.
}

// Jobs are all that have not ended, by id. Not safe for concurrent use.
type Jobs[J Job] map[string][]J

// Find returns the job that a Join is for, if it is there.
func (m Jobs[J]) Find(j *wire.Join) (found J, ok bool) {
	for _, o := range m[j.Job] {
		if o.Key() == j.PublicKey {
			return o, true
		}
	}
	return found, false
}

// Full says why no other job may be opened; nil: one may. There may be most jobs in all, and mostOf
// of one user; 0: any number.
func (m Jobs[J]) Full(user string, most, mostOf int) error {
	all, his := 0, 0
	for _, l := range m {
		for _, o := range l {
			all++
			if o.User() == user {
				his++
			}
		}
	}
	switch {
	case most > 0 && all >= most:
		return fmt.Errorf("this forwarder has %d jobs already (--max-jobs): try again when one of them is over", all)
	case mostOf > 0 && his >= mostOf:
		return fmt.Errorf("user %q has %d jobs here already (--max-jobs-of-user): try again when one of them is over", user, his)
	}
	return nil
}

// Add puts a job in.
func (m Jobs[J]) Add(j J) { m[j.ID()] = append(m[j.ID()], j) }

// Remove takes a job out.
func (m Jobs[J]) Remove(j J) {
	id := j.ID()
	m[id] = slices.DeleteFunc(m[id], func(o J) bool { return o == j })
	if len(m[id]) == 0 {
		delete(m, id)
	}
}

// InOrder returns all of them, by id, those of the same id as they came.
func (m Jobs[J]) InOrder() (list []J) {
	for _, id := range slices.Sorted(maps.Keys(m)) {
		list = append(list, m[id]...)
	}
	return list
}

// Besides says that other jobs gather which may be meant for this one; empty: none does.
func (m Jobs[J]) Besides(j J) string {
	others := func(list []J) bool {
		return slices.ContainsFunc(list, func(o J) bool { return o != j && o.Gathering() })
	}
	if others(m[j.ID()]) {
		return " (ranks with another secret wait under the same job id: do all clusters have the same secret?)"
	}
	for id, same := range m {
		if handshake.JobID(id) != handshake.JobID(j.ID()) && !handshake.IsMeeting(id) && others(same) {
			return " (another job waits here too: do all clusters use the same job id?)"
		}
	}
	return ""
}
