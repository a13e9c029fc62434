package together

import (
	"slices"
	"testing"
	"time"
)

const minute = time.Minute

// standard are the settings of these tests.
var standard = Settings{Tolerance: DefaultTolerance, IdleLimit: DefaultIdleLimit}

func deferred(begin, estimate time.Duration) Seen {
	return Seen{State: Waiting, Deferred: true, Begin: begin, Start: estimate}
}
func queued(estimate time.Duration) Seen { return Seen{State: Waiting, Start: estimate} }
func running(start time.Duration) Seen   { return Seen{State: Running, Start: start} }

// look is a look at two halves, and the actions that must follow.
type look struct {
	at   time.Duration
	a, b Seen
	want []Action
}

func follow(t *testing.T, m *Machine, looks ...look) {
	t.Helper()
	for _, l := range looks {
		if got := m.Look(l.at, []Seen{l.a, l.b}); !slices.Equal(got, l.want) {
			t.Fatalf("at %v: %+v, want %+v", l.at, got, l.want)
		}
	}
}

// TestEstimatesMeet checks that the later half is released first, and the other one with it once
// the estimates meet.
func TestEstimatesMeet(t *testing.T) {
	follow(t, New(2, 0, standard),
		look{minute, deferred(bound, minute), deferred(bound, 3*time.Hour), []Action{{Kind: Begin, Half: 1, At: minute}}},
		look{2 * minute, deferred(bound, 2*minute), queued(3 * time.Hour), nil},
		// The begin time of a deferred half is renewed.
		look{40 * minute, deferred(bound, 40*minute), queued(2 * time.Hour), []Action{{Kind: Begin, Half: 0, At: 40*minute + bound}}},
		look{41 * minute, deferred(2*bound, 41*minute), queued(42 * minute), []Action{{Kind: Begin, Half: 0, At: 41 * minute}}},
		look{42 * minute, queued(42 * minute), running(42 * minute), nil},
		look{43 * minute, running(43 * minute), running(42 * minute), []Action{{Kind: Commit}}},
		look{44 * minute, running(43 * minute), Seen{State: Ended}, nil})
}

// TestIdleLimit checks that a half that runs alone is requeued after the idle limit, and that the
// other one then sets the pace.
func TestIdleLimit(t *testing.T) {
	m := New(2, 0, standard)
	const limit = DefaultIdleLimit
	follow(t, m,
		look{minute, running(minute), deferred(bound, Never), []Action{{Kind: Begin, Half: 1, At: minute}}},
		look{2 * minute, running(minute), queued(Never), nil},
		look{minute + limit, running(minute), queued(Never), []Action{{Kind: Requeue, Half: 0, At: minute + limit + bound}}},
		// Its end takes a while, and the order is repeated if it has no effect.
		look{7 * minute, running(minute), queued(8 * minute), []Action{{Kind: Requeue, Half: 0, At: 7*minute + bound}}},
		look{7*minute + 1, running(minute), queued(8 * minute), nil},
		look{7*minute + 2, deferred(9*minute, 7*minute), queued(8 * minute), []Action{{Kind: Begin, Half: 0, At: 7*minute + 2 + bound}}},
		look{8 * minute, deferred(bound*2, 8*minute), running(8 * minute), []Action{{Kind: Begin, Half: 0, At: 8 * minute}}},
		look{9 * minute, running(9 * minute), running(8 * minute), []Action{{Kind: Commit}}})
	got := m.Attempts()
	want := []Attempt{{From: 0, To: minute + limit, Early: 0, Late: 1, Started: minute},
		{From: minute + limit, To: 9 * minute, Early: 1, Late: 0, Started: 8 * minute}}
	if !slices.Equal(got, want) {
		t.Errorf("%+v, want %+v", got, want)
	}
}

// TestLateEstimate checks that a half is requeued before the idle limit if the other one is
// estimated to start after it.
func TestLateEstimate(t *testing.T) {
	follow(t, New(2, 0, standard),
		look{0, running(0), queued(Never), nil},
		look{settle, running(0), queued(DefaultIdleLimit + 1), []Action{{Kind: Requeue, Half: 0, At: settle + bound}}})
}

// TestLostAlone checks that a half that leaves its nodes by itself begins another attempt.
func TestLostAlone(t *testing.T) {
	m := New(2, 0, standard)
	follow(t, m,
		look{minute, running(minute), queued(2 * minute), nil},
		look{2 * minute, deferred(4*minute, Never), queued(3 * minute), []Action{{Kind: Begin, Half: 0, At: 2 * minute}}},
		look{3 * minute, running(3 * minute), running(3 * minute), []Action{{Kind: Commit}}})
	if got := m.Attempts(); len(got) != 2 || !got[0].Lost {
		t.Errorf("%+v", got)
	}
}

// TestAway checks that no half goes on while a batch system does not answer, that the idle limit
// counts meanwhile, and that the job fails in the end.
func TestAway(t *testing.T) {
	follow(t, New(2, 0, standard),
		look{0, running(0), running(0), []Action{{Kind: Commit}}})
	follow(t, New(2, 0, standard),
		look{0, running(0), queued(minute), nil},
		look{minute, running(0), Seen{}, nil},
		look{DefaultIdleLimit, running(0), Seen{}, []Action{{Kind: Requeue, Half: 0, At: DefaultIdleLimit + bound}}},
		look{bound, deferred(2*bound, Never), Seen{}, []Action{{Kind: Fail, Half: 1, Reason: OutOfReach}}})
	follow(t, New(2, 0, standard),
		look{0, running(0), queued(minute), nil},
		look{1, running(0), running(1), []Action{{Kind: Commit}}})
	follow(t, New(2, 0, standard),
		look{0, running(0), queued(0), nil},
		look{1, Seen{}, running(1), nil}, // the other one may have ended
		look{2, running(0), running(1), []Action{{Kind: Commit}}})
}

// TestFailures checks the ends of a half, and of one that stays held although it is released.
func TestFailures(t *testing.T) {
	follow(t, New(2, 0, standard),
		look{0, Seen{State: Ended}, queued(0), []Action{{Kind: Fail, Half: 0, Reason: HalfEnded}}},
		look{1, Seen{State: Ended}, queued(0), nil})
	release := []Action{{Kind: Begin, Half: 1, At: 1}}
	follow(t, New(2, 0, standard),
		look{1, queued(5 * bound), deferred(Never, 5*bound), release},
		look{1 + bound, queued(5 * bound), deferred(Never, 5*bound), []Action{{Kind: Fail, Half: 1, Reason: HalfHeld}}})
}

// TestReservations checks that both halves begin with their reservations, and that these are given
// back if one does not.
func TestReservations(t *testing.T) {
	s := standard
	s.Reserve = true
	both := []Action{{Kind: Begin, Half: 0, At: bound}, {Kind: Begin, Half: 1, At: bound}}
	late := bound + s.IdleLimit
	m := New(2, 0, s)
	follow(t, m, look{1, deferred(2*bound, 1), deferred(2*bound, bound), []Action{{Kind: Reserve, At: bound}}})
	m.Reserved(bound, true)
	follow(t, m,
		look{2, deferred(2*bound, 1), deferred(2*bound, bound), both},
		look{3, deferred(bound, 1), deferred(bound, bound), nil},
		look{bound, queued(Never), running(bound), nil},
		look{late, queued(Never), running(bound), []Action{{Kind: Requeue, Half: 1, At: late + bound}, {Kind: Unreserve}}})
	m = New(2, 0, s)
	follow(t, m, look{1, deferred(2*bound, 1), deferred(2*bound, bound), []Action{{Kind: Reserve, At: bound}}})
	m.Reserved(bound, false)
	follow(t, m, look{2, deferred(2*bound, 1), deferred(2*bound, bound), []Action{{Kind: Begin, Half: 1, At: 2}}})
}
