// Package halves remembers which halves of jobs have ended while their job was not at the
// forwarder: another half that comes later need not wait for them. It owns no clock, and is not
// safe for concurrent use. What strangers can have it remember is bounded.
package halves

import (
	"slices"
	"time"

	"github.com/leidenzipper/zipper/internal/wire"
)

// keep is how many halves are remembered, 256, and how many jobs: with MaxReason 128 KiB. A
// stranger who has more of them forgotten gains that others wait out their time.
const keep = 256

// MaxReason is how much of a half's reason is kept, bytes.
const MaxReason = 512

// Run tells the jobs of different runs apart.
type Run struct {
	ID  string // without the row
	Key [wire.PublicKeyLen]byte
}

// Record is the memory. The zero value is empty.
type Record struct {
	gone []gone // oldest first
	over []over // oldest first
}

type gone struct {
	run             Run
	cluster, reason string
	until           time.Time // nobody waits for it any more
}

type over struct {
	run Run
	at  time.Time
}

// Over notes that a job has ended here.
func (r *Record) Over(run Run, now time.Time) { r.over = add(r.over, over{run, now}) }

// Took reports whether a job has ended here since a time: then a half that began before has had its
// part in it.
func (r *Record) Took(run Run, since time.Time) bool {
	return slices.ContainsFunc(r.over, func(o over) bool { return o.run == run && !o.at.Before(since) })
}

// Gone notes that a half has ended, of which the others are told until then.
func (r *Record) Gone(run Run, cluster, reason string, until time.Time) {
	r.forget(func(g *gone) bool { return g.run == run && g.cluster == cluster })
	r.gone = add(r.gone, gone{run, cluster, reason, until})
}

// Without says why a job of which a half comes now cannot be: another one has ended; empty: it can.
// The half itself may have begun anew.
func (r *Record) Without(run Run, cluster string, now time.Time) (reason string) {
	r.forget(func(g *gone) bool { return now.After(g.until) || g.run == run && g.cluster == cluster })
	for _, g := range r.gone {
		if g.run == run {
			return g.reason
		}
	}
	return ""
}

func (r *Record) forget(which func(*gone) bool) {
	r.gone = slices.DeleteFunc(r.gone, func(g gone) bool { return which(&g) })
}

func add[E any](l []E, e E) []E {
	if len(l) == keep {
		l = l[:copy(l, l[1:])]
	}
	return append(l, e)
}
