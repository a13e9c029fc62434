// Package index finds the jobs of a forwarder. The id and the key identify a job, so that a
// stranger cannot occupy the ids of others.
package index

import (
	"fmt"
	"maps"
	"slices"

	"github.com/leidenzipper/zipper/handshake"
	"github.com/leidenzipper/zipper/internal/wire"
)

// Job has those properties of a job by which the index finds and counts it.
type Job interface {
	comparable

	ID() string
	Key() [wire.PublicKeyLen]byte
	User() string    // User names the user of the first Join's ticket; empty if none was required.
	Gathering() bool // Gathering reports whether the job gathers, as of its last event.
}

// Jobs has all jobs that have not ended, by id. It is not safe for concurrent use.
type Jobs[J Job] map[string][]J

// Find returns the job that a Join is for. ok is false if there is no such job.
func (m Jobs[J]) Find(j *wire.Join) (found J, ok bool) {
	for _, o := range m[j.Job] {
		if o.Key() == j.PublicKey {
			return o, true
		}
	}
	return found, false
}

// Full returns the reason why no other job may be opened, or nil. At most most jobs may be open in
// all, and mostOf for one user; 0 means no bound.
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

// Add adds a job to the index.
func (m Jobs[J]) Add(j J) { m[j.ID()] = append(m[j.ID()], j) }

// Remove removes a job from the index. It does nothing if the job is not there.
func (m Jobs[J]) Remove(j J) {
	id := j.ID()
	m[id] = slices.DeleteFunc(m[id], func(o J) bool { return o == j })
	if len(m[id]) == 0 {
		delete(m, id)
	}
}

// InOrder returns all jobs by id, and jobs of the same id in the order of Add.
func (m Jobs[J]) InOrder() (list []J) {
	for _, id := range slices.Sorted(maps.Keys(m)) {
		list = append(list, m[id]...)
	}
	return list
}

// Others returns a hint for users, in parentheses, if other gathering jobs may be meant for job j,
// such as one with the same id and another secret; otherwise an empty string.
func (m Jobs[J]) Others(j J) string {
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
