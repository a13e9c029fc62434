package failover

import (
	"errors"
	"strings"
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

// TestRailToLostRanksIsNotNeeded checks that a process goes on when a forwarder refuses it for
// good, or is out of reach for too long, if all ranks behind that forwarder are lost, and only
// then.
func TestRailToLostRanksIsNotNeeded(t *testing.T) {
	for _, lost := range []bool{false, true} {
		patience := time.Minute
		tr := New(Config{Rank: 0, Size: 3, Paths: [][]int{{0}, {0}, {1}}, Replays: true, OnLoss: true, Patience: &patience})
		var a, b Rail
		tr.Forwarder(&a, "a", true, true)
		tr.Forwarder(&b, "b", true, true)
		if lost {
			tr.ClusterLost(1, 2, "test")
		}
		tr.Down(1, &a, "test")
		if end := tr.Deadline(2 + patience); (end == nil) != lost {
			t.Errorf("lost %v: after the patience: %v", lost, end)
		}
		a.Redial()
		a.Attempt(true)
		if over, end := tr.DialFailed(2, &a, Failure{Err: errors.New("refused"), Final: true}); !over || (end == nil) != lost {
			t.Errorf("lost %v: over %v, end %v", lost, over, end)
		}
	}
}

// TestProcessOfLostClusterEnds checks that a process ends, with the reason, when each of several
// forwarders has refused it for good, and not before.
func TestProcessOfLostClusterEnds(t *testing.T) {
	patience := time.Minute
	tr := New(Config{Size: 2, Several: true, Replays: true, OnLoss: true, Patience: &patience})
	rails := make([]Rail, 2)
	for i := range rails {
		tr.Forwarder(&rails[i], "", true, true)
	}
	for i := range rails {
		tr.Down(1, &rails[i], "closed")
		rails[i].Redial()
		rails[i].Attempt(true)
		over, end := tr.DialFailed(2, &rails[i], Failure{Err: errors.New("the cluster is lost"), Final: true})
		if last := i == 1; over != last || (end != nil) != last || last && end.Reason != "the cluster is lost" {
			t.Errorf("refusal %d: over %v, end %v", i, over, end)
		}
	}
	if end := tr.Deadline(3 + patience); end == nil || !strings.Contains(end.Reason, "the cluster is lost") {
		t.Errorf("after the patience: %v", end)
	}
}

// TestProcessEndsWithoutWordOfRanks checks that a process ends, although it has a link to another
// forwarder, when no forwarder that leads to some rank has been reached for the patience: no
// forwarder can tell it then whether the rank is lost.
func TestProcessEndsWithoutWordOfRanks(t *testing.T) {
	patience := time.Minute
	tr := New(Config{Size: 3, Paths: [][]int{{0, 2}, {0, 2}, {1, 3}}, Several: true, Replays: true, OnLoss: true, Patience: &patience})
	rails := make([]Rail, 4)
	for i := range rails {
		tr.Forwarder(&rails[i], "", true, true)
	}
	tr.Down(1, &rails[0], "closed")
	if end := tr.Deadline(3 + patience); end != nil {
		t.Errorf("with one way to each rank: %v", end)
	}
	tr.Down(3, &rails[2], "closed")
	if end := tr.Deadline(3 + patience); end != nil {
		t.Errorf("within the patience: %v", end)
	}
	if end := tr.Deadline(4 + patience); end == nil || end.Everywhere || end.Rank != 0 {
		t.Errorf("after the patience: %v", end)
	}
	tr.ClusterLost(1, 2, "test")
	if end := tr.Deadline(4 + patience); end != nil {
		t.Errorf("after the loss of that rank: %v", end)
	}
}
