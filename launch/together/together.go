// Package together decides when the halves of a job may begin, so that they begin together although
// each of them waits in a batch system of its own. It is a state machine: the caller looks at the
// halves from time to time, passes on what it has seen, and carries out the actions that the
// machine returns. The machine has no clock and does no I/O. All times are durations since a moment
// that the caller chooses.
//
// The half with the latest estimated start sets the pace: it stays in its queue, where its priority
// rises. The other halves are deferred by a begin time, until the estimates meet or that half runs.
// A half that runs alone waits for the idle limit at most. It is then requeued, and steps back for
// longer with each attempt, so that the other half sets the pace meanwhile.
//
// Actions follow from the difference between the states that are seen and wanted, so that an action
// that is lost is repeated, and an order that the batch system changes is noticed.
package together

import "time"

// Never is the time of an event that has not been foreseen.
const Never = time.Duration(1<<63 - 1)

// State is the state of a half in its batch system.
type State uint8

// The states of a half.
const (
	// Away is the state of a half whose batch system does not answer.
	Away State = iota
	// Waiting is the state of a half in the queue, which may be deferred.
	Waiting
	// Running is the state of a half that has started.
	Running
	// Ended is the state of a half that has ended, or has been cancelled.
	Ended
)

// Seen is a half as its batch system shows it.
type Seen struct {
	State State
	// Deferred tells that the half waits for its begin time, or is held.
	Deferred bool
	// Begin is the begin time of a deferred half; Never means that it is held.
	Begin time.Duration
	// Start is the start of a running half, and the estimated start of a waiting one, as if it were
	// not deferred; Never means that there is no estimate.
	Start time.Duration
}

// Kind is the kind of an action.
type Kind uint8

// The kinds of actions.
const (
	// Begin sets the half's begin time; a time that is not in the future releases it.
	Begin Kind = iota
	// Requeue puts the running half back into its queue, with a begin time.
	Requeue
	// Reserve asks for reservations for all halves that begin at the same time. The caller answers
	// by Reserved.
	Reserve
	// Unreserve gives the reservations back.
	Unreserve
	// Commit lets all halves go on: they run at the same time. It is the last action.
	Commit
	// Fail ends the job because of the half; all halves are to be cancelled. It is the last action.
	Fail
)

// Reason is why the job fails.
type Reason uint8

// The reasons of Fail.
const (
	// HalfEnded means that the half has ended before all halves ran.
	HalfEnded Reason = iota + 1
	// HalfHeld means that the half stays held, or deferred, although it was released.
	HalfHeld
	// OutOfReach means that the half's batch system has not answered for an hour.
	OutOfReach
)

// Action is a task for the caller.
type Action struct {
	Kind Kind
	// Half is the index of the half that the action concerns.
	Half int
	// At is the begin time of Begin, Requeue and Reserve.
	At time.Duration
	// Reason is that of Fail.
	Reason Reason
}

// Settings are those of users.
type Settings struct {
	// Tolerance is how far estimates may differ to have met.
	Tolerance time.Duration
	// IdleLimit is how long a running half waits for the others.
	IdleLimit time.Duration
	// Reserve tells to ask for reservations first.
	Reserve bool
}

// Attempt is one try to begin together.
type Attempt struct {
	// From and To are the times of its begin and its end; To is Never while it is in progress.
	From, To time.Duration
	// Early is the half that started first, and Late the one that was waited for; -1 means that no
	// half has started.
	Early, Late int
	// Started is the start of the early half.
	Started time.Duration
	// Lost tells that the early half left its nodes by itself (a preemption, a failed node) before
	// the idle limit was over.
	Lost bool
}

// half is the machine's knowledge of a half.
type half struct {
	// seen is the last answer of its batch system, at the time answered.
	seen     Seen
	answered time.Duration
	away     bool
	// requeued is the time of the last order to requeue its run that started at left; the run may
	// still be seen for a while.
	requeued, left time.Duration
	// back is the time until which it steps back after an attempt that has failed.
	back time.Duration
	// stuck is the time since when it should be released but is not, or Never.
	stuck time.Duration
}

// Machine decides for one job. The zero value is not usable; New makes one.
type Machine struct {
	settings Settings
	halves   []half
	attempts []Attempt
	// asked tells that reservations have been asked for. slot is their begin, or Never.
	asked bool
	slot  time.Duration
	over  bool
}

// New returns a machine for a number of halves, all of which have been submitted at now and are
// deferred.
func New(halves int, now time.Duration, s Settings) *Machine {
	m := &Machine{settings: s, halves: make([]half, halves), asked: !s.Reserve, slot: Never}
	for i := range m.halves {
		m.halves[i] = half{seen: Seen{State: Waiting, Deferred: true, Begin: now + bound, Start: Never}, answered: now,
			left: Never, stuck: Never}
	}
	m.try(now)
	return m
}

// Bound returns the begin time for halves that are submitted at now.
func Bound(now time.Duration) time.Duration { return now + bound }

// try begins an attempt.
func (m *Machine) try(now time.Duration) {
	m.attempts = append(m.attempts, Attempt{From: now, To: Never, Early: -1, Late: -1})
}

// Attempts returns all attempts so far, the current one last.
func (m *Machine) Attempts() []Attempt { return append([]Attempt(nil), m.attempts...) }

// Reserved tells the machine whether its request for reservations at a time was granted.
func (m *Machine) Reserved(at time.Duration, granted bool) {
	if granted {
		m.slot = at
	}
}

// Look takes the states of all halves at a time, and returns the actions that follow. It returns
// nothing after Commit or Fail.
func (m *Machine) Look(now time.Duration, seen []Seen) []Action {
	if m.over {
		return nil
	}
	for i := range m.halves {
		m.halves[i].learn(now, seen[i])
	}
	if a, ok := m.fails(now); ok {
		m.end(now)
		return []Action{a}
	}
	early, late := m.order(now)
	if late < 0 {
		if m.allAnswer() {
			m.run(early)
			m.end(now)
			return []Action{{Kind: Commit}}
		}
		return nil
	}
	m.note(now, early, late)
	switch {
	case early >= 0 && m.idles(now, early, late):
		return m.again(now, late)
	case early >= 0:
		return m.release(now, func(int) bool { return true })
	case m.slot != Never && now > m.slot+m.settings.IdleLimit:
		m.slot = Never
		return []Action{{Kind: Unreserve}}
	case m.slot != Never:
		return m.reserved(now)
	case !m.asked && m.estimated():
		m.asked = true
		return []Action{{Kind: Reserve, At: m.halves[late].estimate(now)}}
	}
	return m.pace(now, late)
}

// learn takes an answer of the half's batch system.
func (h *half) learn(now time.Duration, s Seen) {
	if h.away = s.State == Away; h.away {
		return
	}
	if s.State == Running && s.Start == h.left { // its end is under way
		s = Seen{State: Waiting, Deferred: true, Begin: now + bound, Start: Never}
	} else {
		h.left = Never
	}
	h.seen, h.answered = s, now
	if s.State != Waiting || !s.Deferred {
		h.stuck = Never
	}
}

// leaving tells whether a run that was requeued has not ended yet.
func (h *half) leaving() bool { return h.left != Never }

// running tells whether the half runs, as far as is known.
func (h *half) running() bool { return h.seen.State == Running }

// estimate returns when the half can start at the earliest.
func (h *half) estimate(now time.Duration) time.Duration {
	if h.seen.Start == Never {
		return now
	}
	return max(now, h.seen.Start)
}

// fails returns the action for a half of which nothing can be expected any more.
func (m *Machine) fails(now time.Duration) (Action, bool) {
	for i := range m.halves {
		h := &m.halves[i]
		switch {
		case h.seen.State == Ended:
			return Action{Kind: Fail, Half: i, Reason: HalfEnded}, true
		case h.away && now-h.answered >= bound:
			return Action{Kind: Fail, Half: i, Reason: OutOfReach}, true
		case h.stuck != Never && now-h.stuck >= bound:
			return Action{Kind: Fail, Half: i, Reason: HalfHeld}, true
		}
	}
	return Action{}, false
}

// order returns the running half that started first, or -1, and the waiting one that is expected to
// start last, or -1. Halves that step back are expected to follow the others.
func (m *Machine) order(now time.Duration) (early, late int) {
	early, late = -1, -1
	for i := range m.halves {
		h := &m.halves[i]
		switch {
		case h.running():
			if early < 0 || h.seen.Start < m.halves[early].seen.Start {
				early = i
			}
		case late < 0 || m.later(now, h, &m.halves[late]):
			late = i
		}
	}
	return early, late
}

// later tells whether half a is expected to start after half b.
func (m *Machine) later(now time.Duration, a, b *half) bool {
	if backA, backB := now < a.back, now < b.back; backA != backB {
		return backB
	}
	return a.estimate(now) > b.estimate(now)
}

func (m *Machine) allAnswer() bool {
	for i := range m.halves {
		if m.halves[i].away {
			return false
		}
	}
	return true
}

// estimated tells whether there is an estimate for every half.
func (m *Machine) estimated() bool {
	for i := range m.halves {
		if m.halves[i].seen.Start == Never {
			return false
		}
	}
	return m.allAnswer()
}

// run notes the early half of an attempt.
func (m *Machine) run(early int) {
	if t := &m.attempts[len(m.attempts)-1]; t.Early < 0 {
		t.Early, t.Started = early, m.halves[early].seen.Start
	}
}

// end ends the current attempt.
func (m *Machine) end(now time.Duration) {
	m.attempts[len(m.attempts)-1].To = now
	m.over = true
}

// note keeps the record of the current attempt. A half that has left its nodes by itself begins
// another one.
func (m *Machine) note(now time.Duration, early, late int) {
	t := &m.attempts[len(m.attempts)-1]
	if t.Early >= 0 && !m.halves[t.Early].running() {
		t.To, t.Lost = now, true
		m.try(now)
		t = &m.attempts[len(m.attempts)-1]
	}
	t.Late = late
	if early >= 0 {
		m.run(early)
	}
}

// idles tells whether the running halves have waited enough: for the idle limit, or until it is
// known that the late half will not start within it.
func (m *Machine) idles(now time.Duration, early, late int) bool {
	start := m.halves[early].seen.Start
	if now-start >= m.settings.IdleLimit {
		return true
	}
	l := &m.halves[late]
	return now-start >= settle && !l.away && !l.seen.Deferred && l.seen.Start != Never &&
		l.seen.Start > start+m.settings.IdleLimit
}

// again requeues the running halves, which step back, and begins an attempt.
func (m *Machine) again(now time.Duration, late int) (out []Action) {
	wait := m.settings.Tolerance << min(len(m.attempts)-1, maxDoublings)
	if wait <= 0 || wait > bound {
		wait = bound
	}
	for i := range m.halves {
		h := &m.halves[i]
		if !h.running() || h.away {
			continue
		}
		h.left, h.requeued, h.back = h.seen.Start, now, now+wait
		out = append(out, Action{Kind: Requeue, Half: i, At: now + bound})
	}
	if len(out) == 0 {
		return nil
	}
	if m.slot != Never {
		m.slot = Never
		out = append(out, Action{Kind: Unreserve})
	}
	t := &m.attempts[len(m.attempts)-1]
	t.To, t.Late = now, late
	m.try(now)
	return out
}

// reserved defers all halves until the begin of their reservations.
func (m *Machine) reserved(now time.Duration) (out []Action) {
	for i := range m.halves {
		h := &m.halves[i]
		if h.seen.State == Waiting && !h.away && now < m.slot && (!h.seen.Deferred || h.seen.Begin != m.slot) {
			out = append(out, Action{Kind: Begin, Half: i, At: m.slot})
		}
	}
	if now >= m.slot {
		return m.release(now, func(int) bool { return true })
	}
	return out
}

// pace releases the late half and those that go with it, and defers the others.
func (m *Machine) pace(now time.Duration, late int) []Action {
	last := m.halves[late].estimate(now)
	return m.release(now, func(i int) bool {
		h := &m.halves[i]
		if i == late {
			return true
		}
		e := h.estimate(now)
		return now >= h.back && (last-e <= m.settings.Tolerance || e > now+lead)
	})
}

// release releases those waiting halves that may start, and defers the others. The begin time of a
// deferred half is renewed long before it is over.
func (m *Machine) release(now time.Duration, may func(i int) bool) (out []Action) {
	for i := range m.halves {
		h := &m.halves[i]
		switch {
		case h.seen.State != Waiting || h.away:
		case h.leaving():
			if now-h.requeued >= repeat {
				h.requeued = now
				out = append(out, Action{Kind: Requeue, Half: i, At: now + bound})
			}
		case may(i):
			if h.seen.Deferred {
				if h.stuck == Never {
					h.stuck = now
				}
				out = append(out, Action{Kind: Begin, Half: i, At: now})
			}
		default:
			if h.stuck = Never; !h.seen.Deferred || h.seen.Begin < now+bound/2 {
				out = append(out, Action{Kind: Begin, Half: i, At: now + bound})
			}
		}
	}
	return out
}
