package failover

import (
	"testing"
	"time"
)

// TestDirectRailIsGivenUp checks that a direct rail that is lost again and again without progress,
// as by a middlebox while its processes compute, is given up and does not end the job.
func TestDirectRailIsGivenUp(t *testing.T) {
	patience := time.Minute
	tr := New(Config{Size: 2, End: 1, Replays: true, Patience: &patience})
	var forwarder, direct Rail
	tr.Forwarder(&forwarder, "", true, true)
	tr.Direct(&direct, 1, true)
	for i := range maxStrikes {
		now := time.Duration(i+1) * time.Second
		if !tr.Up(now, &direct, 0, "") {
			t.Fatalf("loss %d: the link is refused", i)
		}
		if end := tr.Lost(now, &direct, Loss{Reason: "reset"}); end != nil {
			t.Fatalf("loss %d ends the job: %s", i, end.Reason)
		}
		again := tr.Down(now, &direct, "reset")
		if again {
			direct.Redial()
		}
		if want := i < maxStrikes-1; again != want {
			t.Errorf("loss %d: the link is opened again: %t, want %t", i, again, want)
		}
	}
	if direct.Dials() || !forwarder.Reaches(1) {
		t.Errorf("the direct rail dials: %t, the forwarder reaches rank 1: %t", direct.Dials(), forwarder.Reaches(1))
	}
}

// TestRailRestoresItsOwnRanksOnly checks that a rail that comes up resets the deadlines of the
// ranks that it leads to, and of no others.
func TestRailRestoresItsOwnRanksOnly(t *testing.T) {
	patience := time.Minute
	tr := New(Config{Size: 3, End: 1, Paths: [][]int{{0, 1}, {0, 1}, {2, 3}}, Several: true, Replays: true, Patience: &patience})
	rails := make([]Rail, 4)
	for i := range rails {
		tr.Forwarder(&rails[i], "", true, true)
	}
	for i := range rails {
		if !tr.Down(1, &rails[i], "cut") {
			t.Fatalf("rail %d is not opened again", i)
		}
		rails[i].Redial()
	}
	up := func(now time.Duration, i int) {
		t.Helper()
		if !tr.Up(now, &rails[i], 0, "") {
			t.Fatalf("the link of rail %d is refused", i)
		}
	}
	up(2, 0) // Now both ranks have been checked: 1 is reachable, 2 is not.
	since, out := tr.reach.since[2]
	if !out || since != 1 && since != 2 {
		t.Fatalf("rank 2 is unreachable since %v (%t)", since, out)
	}
	up(3, 1)
	if got, out := tr.reach.since[2]; !out || got != since {
		t.Errorf("rank 2 is unreachable since %v, then since %v (%t)", since, got, out)
	}
	up(4, 2)
	if got := tr.reach.since; len(got) > 0 {
		t.Errorf("unreachable: %v", got)
	}
}
