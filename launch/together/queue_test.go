package together

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"
	"time"
)

// tick is the step of the simulated time. A queue plans every planTicks-th tick.
const (
	tick      = 10 * time.Second
	planTicks = 3
)

// requeueDelay is how long a requeued job may not begin; Slurm waits for its credentials to expire.
const requeueDelay = 2 * time.Minute

// job is a batch job of a simulated queue.
type job struct {
	nodes int
	// run is how long the job runs, and limit how long it may.
	run, limit time.Duration
	// begin is the time before which the job may not start.
	begin time.Duration
	// since is the time from which its priority age counts.
	since time.Duration
	// start is the time at which it has started, if it runs.
	start   time.Duration
	running bool
	// planned is the start according to the last plan, and hasPlan tells whether there is one.
	planned time.Duration
	hasPlan bool
	// gated tells that the job runs but waits for the other half, so that its run has no end yet.
	gated bool
}

// queue is a simulated batch system: first come, first served by age, with conservative backfill.
type queue struct {
	nodes int
	jobs  []*job
	dirty bool
	// keepsAge tells that a deferred or requeued job keeps its age.
	keepsAge bool
	rnd      *rand.Rand
	// rate is the probability that a job, and then another one, arrives in a tick.
	rate float64
	// slot is the reservation of a job, if there is one.
	slot *slot
}

// slot is a reservation.
type slot struct {
	job *job
	at  time.Duration
}

// reserve makes a reservation for a job, if the nodes will be free.
func (q *queue) reserve(now, at time.Duration, j *job) bool {
	if q.running(now, nil).earliest(j.nodes, j.limit, at) != at {
		return false
	}
	q.slot, q.dirty = &slot{j, at}, true
	return true
}

// unreserve gives the reservation back.
func (q *queue) unreserve() { q.slot, q.dirty = nil, true }

// setBegin sets the time before which a waiting job may not start.
func (q *queue) setBegin(j *job, now, at time.Duration) {
	if !q.keepsAge && (at > now || j.begin > now) {
		j.since = max(now, at)
	}
	j.begin, j.hasPlan, q.dirty = at, false, true
}

// requeue puts a running job back.
func (q *queue) requeue(j *job, now, at time.Duration) {
	j.running, j.gated = false, false
	q.setBegin(j, now, max(at, now+requeueDelay))
}

// profile has the free nodes from each time on.
type profile struct {
	at   []time.Duration
	free []int
}

// running returns the profile in which only the running jobs take nodes, until their limits, and a
// reservation of another job than the given one.
func (q *queue) running(now time.Duration, of *job) *profile {
	p := &profile{at: []time.Duration{now}, free: []int{q.nodes}}
	for _, j := range q.jobs {
		if j.running {
			p.take(now, max(now+tick, j.start+j.limit), j.nodes)
		}
	}
	if s := q.slot; s != nil && s.job != of && !s.job.running {
		p.take(max(now, s.at), max(now, s.at)+s.job.limit, s.job.nodes)
	}
	return p
}

// cut makes t the beginning of a step and returns its index.
func (p *profile) cut(t time.Duration) int {
	i, ok := slices.BinarySearch(p.at, t)
	if !ok {
		p.at = slices.Insert(p.at, i, t)
		p.free = slices.Insert(p.free, i, p.free[i-1])
	}
	return i
}

// take takes nodes for some time.
func (p *profile) take(from, to time.Duration, nodes int) {
	a := p.cut(from)
	b := p.cut(to)
	for i := a; i < b; i++ {
		p.free[i] -= nodes
	}
}

// earliest returns the first time at which the nodes are free for a limit.
func (p *profile) earliest(nodes int, limit, from time.Duration) time.Duration {
	for i := 0; i < len(p.at); i++ {
		if i+1 < len(p.at) && p.at[i+1] <= from {
			continue
		}
		start := max(from, p.at[i])
		ok := true
		for k := i; k < len(p.at) && p.at[k] < start+limit; k++ {
			if p.free[k] < nodes {
				ok, i = false, k
				break
			}
		}
		if ok {
			return start
		}
	}
	return time.Duration(math.MaxInt64)
}

// plan starts those jobs that can, and plans the others in the order of their age. extra is a job
// behind all others, whose planned start is returned.
func (q *queue) plan(now time.Duration, extra *job) time.Duration {
	p := q.running(now, nil)
	if s := q.slot; s != nil && now >= s.at && s.job.begin <= now && !s.job.running {
		s.job.running, s.job.start = true, now
	}
	slices.SortStableFunc(q.jobs, func(a, b *job) int { return cmp.Compare(a.since, b.since) })
	for _, j := range q.jobs {
		if j.running || j.begin > now {
			continue
		}
		at := p.earliest(j.nodes, j.limit, now)
		p.take(at, at+j.limit, j.nodes)
		if extra == nil {
			if j.planned, j.hasPlan = at, true; at == now {
				j.running, j.start = true, now
			}
		}
	}
	if extra == nil {
		return 0
	}
	return p.earliest(extra.nodes, extra.limit, now)
}

// step advances the queue to now.
func (q *queue) step(now time.Duration) {
	for p := q.rnd.Float64(); p < q.rate; p = q.rnd.Float64() {
		q.jobs = append(q.jobs, load(q.rnd, q.nodes, now))
		q.dirty = true
	}
	n := len(q.jobs)
	q.jobs = slices.DeleteFunc(q.jobs, func(j *job) bool { return j.running && !j.gated && now >= j.start+j.run })
	q.dirty = q.dirty || n != len(q.jobs)
	for _, j := range q.jobs {
		if !j.running && j.begin > now-tick && j.begin <= now {
			q.dirty = true
		}
	}
	if q.dirty && now/tick%planTicks == 0 {
		q.plan(now, nil)
		q.dirty = false
	}
}

// between draws a number whose logarithm is uniform.
func between(r *rand.Rand, low, high float64) float64 {
	return low * math.Exp(r.Float64()*math.Log(high/low))
}

// load draws a job of other users: of up to half the nodes, and 5 min to 6 h, whose limit is up to
// three times as long.
func load(r *rand.Rand, nodes int, now time.Duration) *job {
	run := time.Duration(between(r, 300, 6*3600)) * time.Second
	limit := (time.Duration(float64(run)*(1+2*r.Float64())) + 5*time.Minute).Truncate(5 * time.Minute)
	return &job{nodes: int(between(r, 1, float64(nodes)/2)), run: run, limit: limit, since: now}
}
