// Package halves records which halves of jobs have ended before their job ran at the forwarder, so
// that another half that arrives later need not wait for them, and which jobs have ended there. It
// has no clock, and is not safe for concurrent use. Its size is bounded, because strangers can add
// records.
package halves

import (
	"slices"
	"time"

	"github.com/leidenzipper/zipper/internal/wire"
)

// keep is the maximum number of halves, 256, and of jobs: with MaxReason 128 KiB. A stranger who
// displaces records gains only that other halves wait until their time-out.
const keep = 256

// MaxReason is the maximum length of a half's reason in bytes.
const MaxReason = 512

// Run identifies one run of a job. A job that is started again has the same id and another key.
type Run struct {
	ID  string                  // the job's id, without the suffix that distinguishes rows of forwarders
	Key [wire.PublicKeyLen]byte // the job's public key
}

// Record remembers which halves of jobs (the ranks that one launcher has started), and which whole
// jobs, have ended at this forwarder. The zero value is empty.
type Record struct {
	ended []ended // oldest first
	over  []over  // oldest first
}

type ended struct {
	run             Run
	cluster, reason string
	until           time.Time // the time until which joining ranks of other halves are told that this one has ended
}

type over struct {
	run Run
	at  time.Time
}

// Over records that the whole job has ended at this forwarder at the time now.
func (r *Record) Over(run Run, now time.Time) { r.over = add(r.over, over{run, now}) }

// Took reports whether a job has ended here after the time since. A half that began at that time
// has then taken part in the job.
func (r *Record) Took(run Run, since time.Time) bool {
	return slices.ContainsFunc(r.over, func(o over) bool { return o.run == run && !o.at.Before(since) })
}

// Ended records that a half, the ranks in cluster, has ended for a reason. Joining ranks of other
// halves are told so until the given time.
func (r *Record) Ended(run Run, cluster, reason string, until time.Time) {
	r.forget(func(g *ended) bool { return g.run == run && g.cluster == cluster })
	r.ended = add(r.ended, ended{run, cluster, reason, until})
}

// Without returns the reason why a job cannot run because another half has ended, or an empty
// string. cluster is the half that arrives now; it may be a new start of the half that ended.
func (r *Record) Without(run Run, cluster string, now time.Time) (reason string) {
	r.forget(func(g *ended) bool { return now.After(g.until) || g.run == run && g.cluster == cluster })
	for _, g := range r.ended {
		if g.run == run {
			return g.reason
		}
	}
	return ""
}

func (r *Record) forget(which func(*ended) bool) {
	r.ended = slices.DeleteFunc(r.ended, func(g ended) bool { return which(&g) })
}

func add[E any](l []E, e E) []E {
	if len(l) == keep {
		l = l[:copy(l, l[1:])]
	}
	return append(l, e)
}
