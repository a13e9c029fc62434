package failover

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/leidenzipper/zipper/internal/wire"
)

// TestRandomEvents makes events happen to the rails of a job, in any order that the caller of a
// Tracker may bring about. It checks after each that rails and deadlines agree: no transition is
// illegal, and while there is a link, a rank has a deadline exactly if no rail reaches it.
func TestRandomEvents(t *testing.T) {
	for seed := range uint64(2000) {
		x := newRandomJob(rand.New(rand.NewPCG(seed, 3)))
		for i := range 200 {
			what := x.event()
			if err := x.check(); err != nil {
				t.Fatalf("seed %d, event %d, %s: %v", seed, i, what, err)
			}
		}
	}
}

// randomJob is a job of TestRandomEvents: a Tracker with its rails and a clock.
type randomJob struct {
	*Tracker
	r        *rand.Rand    // random choices, from the seed of the job
	now      time.Duration // current time
	progress uint64        // current Loss.Progress
	rails    []*Rail       // rails to forwarders, then one direct rail
}

func newRandomJob(r *rand.Rand) *randomJob {
	patience := 10 * time.Second
	n := 1 + r.IntN(3)
	cfg := Config{Size: 4, End: 1, Several: n > 1, Replays: n > 1 || r.IntN(2) == 0, Patience: &patience, Warn: func(string) {}}
	if n == 3 && r.IntN(2) == 0 {
		cfg.Paths = [][]int{{0, 1}, {0, 1}, {1, 2}, {1, 2}}
	}
	x := &randomJob{Tracker: New(cfg), r: r, now: 1}
	for i := range n {
		x.rails = append(x.rails, new(Rail))
		x.Forwarder(x.rails[i], fmt.Sprint("f", i), true, cfg.Replays)
	}
	x.rails = append(x.rails, new(Rail))
	x.Direct(x.rails[n], 1, r.IntN(2) == 0)
	return x
}

// event makes an event happen, and returns its name.
func (x *randomJob) event() string {
	x.now += time.Duration(x.r.Int64N(int64(time.Second)))
	r := x.rails[x.r.IntN(len(x.rails))]
	switch k := x.r.IntN(12); {
	case k < 3 && r.Linked() && r.State() != Closed:
		x.Lost(x.now, r, Loss{Kind: Kind(x.r.IntN(2)), Reason: "cut", Progress: x.progress})
		if x.Down(x.now, r, "cut") {
			r.Redial()
		}
		x.leaveLater()
		return "loss of " + r.Name()
	case k < 6 && (r.State() == Dialing || r.peer >= 0 && r.State() == Down):
		x.Up(x.now, r, x.progress, "there")
		return "link of " + r.Name()
	case k == 6 && r.State() == Dialing:
		r.Attempt(true)
		x.DialFailed(x.now, r, Failure{Err: errors.New("no"), Refused: x.r.IntN(2) == 0, Final: x.r.IntN(8) == 0,
			Permanent: x.r.IntN(4) == 0, Cancelled: x.r.IntN(4) == 0})
		return "refusal of " + r.Name()
	case k < 9 && r.Linked() && r.peer < 0:
		rank := uint32(1 + x.r.IntN(3))
		_, err := x.Reachable(x.now, r, wire.RailState{Rank: rank, Up: x.r.IntN(2) == 0, Cut: x.r.IntN(2) == 0, Reason: "lost"})
		if err != nil && x.Replays {
			panic(err)
		}
		return fmt.Sprint("report of ", r.Name(), " on ", rank)
	case k == 9:
		x.progress++
		return "progress"
	case k == 10 && x.r.IntN(20) == 0:
		x.Finished()
		x.Ignore()
		for _, r := range x.rails {
			if r.State() == Up {
				r.ByeSent()
			}
		}
		x.leaveLater()
		return "finish"
	default:
		x.Deadline(x.now)
		x.Notices(x.now)
		return "tick"
	}
}

func (x *randomJob) leaveLater() {
	for _, r := range x.rails {
		if r.peer < 0 && x.Leave(r) && r.State() == Down {
			r.Redial()
		}
	}
}

func (x *randomJob) check() error {
	for _, r := range x.rails {
		if r.Open() != (r.State() == Up || r.State() == ByeSent) || r.Linked() && !r.linked || r.State() <= Dialing && r.Linked() {
			return fmt.Errorf("rail %s is %v, linked %v", r.Name(), r.State(), r.Linked())
		}
		if !r.Linked() && r.Unreachable() > 0 {
			return fmt.Errorf("rail %s has no link, and reports of %d ranks", r.Name(), r.Unreachable())
		}
	}
	if !x.Replays || x.ignoring || x.reach.linked() == 0 {
		return nil
	}
	if x.reach.unlinkedSince != 0 {
		return errors.New("there is a link, and a deadline for one")
	}
	for rank := 1; rank < x.Size; rank++ {
		reached := x.reach.anyRailTo(rank, func(r *Rail) bool { return r.Reaches(rank) })
		if _, out := x.reach.since[rank]; out == reached {
			return fmt.Errorf("rank %d: reached %v, has a deadline %v", rank, reached, out)
		}
	}
	return nil
}
