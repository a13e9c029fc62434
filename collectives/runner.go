package collectives

// Runner steps one schedule. It is not safe for concurrent use.
type Runner struct {
	rounds  Schedule
	waiting []Request
	err     error
}

// NewRunner returns a Runner of s. Step starts the first round.
func NewRunner(s Schedule) *Runner { return &Runner{rounds: s} }

// Remaining returns the number of rounds that have not started.
func (x *Runner) Remaining() int { return len(x.rounds) }

// Step goes as far as possible without blocking. It reports whether the collective has finished,
// and then the first error. An error does not end the schedule, because other processes need the
// rest of this one's messages.
func (x *Runner) Step() (over bool, err error) {
	for {
		if !x.settle() {
			return false, nil
		}
		if len(x.rounds) == 0 {
			return true, x.err
		}
		round := x.rounds[0]
		x.rounds[0], x.rounds = nil, x.rounds[1:]
		started, err := round()
		x.waiting = append(x.waiting, started...)
		x.note(err)
	}
}

// settle drops finished requests and reports whether none is left.
func (x *Runner) settle() bool {
	left := x.waiting[:0]
	for _, r := range x.waiting {
		if r == nil {
			continue
		}
		over, err := r.Done()
		if !over {
			left = append(left, r)
			continue
		}
		x.note(err)
	}
	clear(x.waiting[len(left):])
	x.waiting = left
	return len(left) == 0
}

func (x *Runner) note(err error) {
	if x.err == nil {
		x.err = err
	}
}
