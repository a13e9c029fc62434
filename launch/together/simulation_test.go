package together

import (
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/leidenzipper/zipper/internal/seeds"
)

// The simulated clusters have 64 nodes and a load of other users' jobs between half of their nodes
// and nearly all. The job is submitted after a day and a half, and has two weeks to start.
const (
	simNodes = 64
	lowLoad  = 0.5
	highLoad = 0.95
	warmUp   = 36 * time.Hour
	horizon  = warmUp + 14*24*time.Hour
)

// world is one simulated job of two halves.
type world struct {
	queues [2]*queue
	halves [2]*job
	// away is the time until which each batch system does not answer.
	away [2]time.Duration
	rnd  *rand.Rand
	conditions
}

// conditions are those of a series of simulated jobs.
type conditions struct {
	name string
	// keepsAge tells that deferred and requeued jobs keep their priority age.
	keepsAge bool
	// reservations tells that users may make reservations.
	reservations bool
	// rough tells that the estimate of a deferred half knows the running jobs only, as that of
	// sbatch --test-only does.
	rough bool
	// faults tells that batch systems do not answer for a while, lose orders, and that nodes fail.
	faults bool
}

// outcome is the end of a simulated job.
type outcome struct {
	started bool
	// start is the time from the submission until both halves run, and estimate the time until the
	// later half would have started, as estimated at the submission.
	start, estimate time.Duration
	// idle and own are the node-seconds that halves have waited, and those of the earlier half.
	idle, own float64
	// deferred is the longest time for which both halves were deferred.
	deferred time.Duration
	attempts int
}

func newWorld(seed uint64, c conditions) *world {
	r := rand.New(rand.NewPCG(seed, 1))
	w := &world{rnd: r, conditions: c}
	probe := rand.New(rand.NewPCG(7, 7))
	const jobs = 4000
	var work float64 // the mean node-seconds of a job
	for range jobs {
		j := load(probe, simNodes, 0)
		work += float64(j.nodes) * j.run.Seconds() / jobs
	}
	run := time.Duration(between(r, 3600, 4*3600)) * time.Second
	for i := range w.queues {
		mean := (lowLoad + (highLoad-lowLoad)*r.Float64()) * simNodes * tick.Seconds() / work
		w.queues[i] = &queue{nodes: simNodes, rnd: rand.New(rand.NewPCG(seed, uint64(i)+2)), keepsAge: c.keepsAge,
			rate: mean / (1 + mean)}
		w.halves[i] = &job{nodes: int(between(r, 1, simNodes/4)), run: run,
			limit: time.Duration(float64(run) * (1 + 2*r.Float64())), gated: true}
	}
	return w
}

// look returns the state of a half.
func (w *world) look(now time.Duration, i int) Seen {
	h := w.halves[i]
	switch {
	case now < w.away[i]:
		return Seen{}
	case h.running:
		return Seen{State: Running, Start: h.start}
	case h.begin > now && w.rough:
		return Seen{State: Waiting, Deferred: true, Begin: h.begin,
			Start: w.queues[i].running(now, nil).earliest(h.nodes, h.limit, now)}
	case h.begin > now:
		return Seen{State: Waiting, Deferred: true, Begin: h.begin, Start: w.queues[i].plan(now, h)}
	case h.hasPlan:
		return Seen{State: Waiting, Start: h.planned}
	}
	return Seen{State: Waiting, Start: Never}
}

// pause is the least time between two faults of a batch system: the job survives less than an hour.
const pause = 10 * time.Minute

// fault makes faults happen.
func (w *world) fault(now time.Duration) {
	for i, h := range w.halves {
		switch n := w.rnd.IntN(2000); {
		case n == 0 && now > w.away[i]+pause:
			w.away[i] = now + time.Duration(between(w.rnd, 20, 2400))*time.Second
		case n < 5 && h.running:
			w.queues[i].requeue(h, now, now)
		}
	}
}

// act carries out an action, or loses it.
func (w *world) act(now time.Duration, m *Machine, a Action) {
	if w.faults && w.rnd.IntN(20) == 0 {
		return
	}
	q, h := w.queues[a.Half], w.halves[a.Half]
	switch a.Kind {
	case Begin:
		q.setBegin(h, now, a.At)
	case Requeue:
		q.requeue(h, now, a.At)
	case Reserve:
		granted := w.queues[0].reserve(now, a.At, w.halves[0]) && w.queues[1].reserve(now, a.At, w.halves[1])
		if !granted {
			w.queues[0].unreserve()
			w.queues[1].unreserve()
		}
		m.Reserved(a.At, granted)
	case Unreserve:
		w.queues[0].unreserve()
		w.queues[1].unreserve()
	}
}

// play simulates one job.
func play(seed uint64, c conditions) (o outcome, err error) {
	w := newWorld(seed, c)
	now := time.Duration(0)
	for ; now < warmUp; now += tick {
		w.queues[0].step(now)
		w.queues[1].step(now)
	}
	for i, q := range w.queues {
		h := w.halves[i]
		o.estimate = max(o.estimate, q.plan(now, h)-now)
		h.since, h.begin = now, Bound(now)
		q.jobs = append(q.jobs, h)
	}
	m := New(2, now, Settings{Tolerance: DefaultTolerance, IdleLimit: DefaultIdleLimit, Reserve: c.reservations})
	released := now
	for ; now < horizon; now += tick {
		for i, q := range w.queues {
			q.step(now)
			if h := w.halves[i]; h.running {
				o.idle += float64(h.nodes) * tick.Seconds()
			}
		}
		if w.faults {
			w.fault(now)
		}
		a, b := w.halves[0], w.halves[1]
		if a.running || b.running || a.begin <= now || b.begin <= now || w.queues[0].slot != nil {
			released = now
		}
		o.deferred = max(o.deferred, now-released)
		for _, act := range m.Look(now, []Seen{w.look(now, 0), w.look(now, 1)}) {
			switch act.Kind {
			case Fail:
				return o, fmt.Errorf("half %d fails, reason %d", act.Half, act.Reason)
			case Commit:
				early := a
				if b.start < a.start {
					early = b
				}
				o.started, o.start, o.attempts = true, max(a.start, b.start)-warmUp, len(m.Attempts())
				o.own = float64(early.nodes) * early.run.Seconds()
				if !a.running || !b.running {
					return o, fmt.Errorf("it begins although a half does not run")
				}
				return o, nil
			}
			w.act(now, m, act)
		}
	}
	return o, nil
}

// series plays the jobs of seeds from and to, on two cores.
func series(t *testing.T, from, to uint64, c conditions) []outcome {
	t.Helper()
	out := make([]outcome, to-from)
	var all sync.WaitGroup
	const cores = 2
	for k := range uint64(cores) {
		all.Go(func() {
			for i := k; i < to-from; i += cores {
				var err error
				if out[i], err = play(from+i, c); err != nil {
					t.Errorf("%s: ZIPPER_SEEDS=%d: %v", c.name, from+i, err)
				}
			}
		})
	}
	all.Wait()
	return out
}

// TestSimulation checks what a job costs and when it starts, over many simulated jobs, and prints
// the figures of the how-to page.
func TestSimulation(t *testing.T) {
	from, to, err := seeds.Asked()
	if err != nil {
		t.Fatal(err)
	}
	if to == 0 {
		if to = 100; os.Getenv("ZIPPER_LONG") != "" {
			to = 1000
		}
	}
	for _, c := range []conditions{
		{name: "age is lost"}, {name: "age is kept", keepsAge: true}, {name: "reservations", reservations: true},
		{name: "rough estimates", rough: true}, {name: "faults", rough: true, faults: true},
	} {
		var idle, own float64
		var ratios []float64
		var attempts []int
		var deferred time.Duration
		late := 0
		list := series(t, from, to, c)
		for _, o := range list {
			idle, own, deferred = idle+o.idle, own+o.own, max(deferred, o.deferred)
			if !o.started {
				late++
				continue
			}
			// A start within the tolerance is as good as one at once.
			least := DefaultTolerance.Seconds()
			ratios = append(ratios, max(o.start.Seconds(), least)/max(o.estimate.Seconds(), least))
			attempts = append(attempts, o.attempts)
		}
		if len(ratios) == 0 {
			t.Fatalf("%s: no job has started", c.name)
		}
		slices.Sort(ratios)
		slices.Sort(attempts)
		at := func(p float64) int { return int(p * float64(len(ratios)-1)) }
		t.Logf("%-15s %d jobs: idle %.1f %% of the earlier half's node-seconds; start / estimate: median %.2f, 90 %% %.2f; "+
			"attempts: median %d, 90 %% %d; both deferred at most %v; not started %d", c.name, len(list), 100*idle/own,
			ratios[at(0.5)], ratios[at(0.9)], attempts[at(0.5)], attempts[at(0.9)], deferred, late)
		if len(list) < 100 {
			continue // of a few jobs no average is known
		}
		if idle > 0.05*own || ratios[at(0.5)] > 1.1 || late*100 > len(list) {
			t.Errorf("%s: more than 5 %% idle, a median start above 1.1, or more than 1 %% not started", c.name)
		}
		if deferred > bound {
			t.Errorf("%s: both halves were deferred for %v", c.name, deferred)
		}
	}
}
