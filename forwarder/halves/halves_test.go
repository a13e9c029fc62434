package halves

import (
	"fmt"
	"testing"
	"time"
)

func TestRecord(t *testing.T) {
	var r Record
	now := time.Unix(1000, 0)
	at := func(s int) time.Time { return now.Add(time.Duration(s) * time.Second) }
	j, k := Run{ID: "j"}, Run{ID: "j", Key: [32]byte{1}}
	r.Ended(j, "b", "b is gone", at(60))
	for _, tc := range []struct {
		run     Run
		cluster string
		at      int
		want    string
	}{
		{k, "a", 1, ""}, // another secret
		{j, "a", 1, "b is gone"},
		{j, "c", 60, "b is gone"},
		{j, "a", 61, ""}, // the time is over
	} {
		if got := r.Without(tc.run, tc.cluster, at(tc.at)); got != tc.want {
			t.Errorf("%+v: %q", tc, got)
		}
	}
	r.Ended(j, "b", "b is gone", at(60))
	if got := r.Without(j, "b", at(2)); got != "" {
		t.Errorf("a half that starts again: %q", got)
	}
	if got := r.Without(j, "a", at(3)); got != "" {
		t.Errorf("it has started again, but the other one is told %q", got)
	}
	r.Over(j, at(10))
	if !r.Took(j, at(10)) || r.Took(j, at(11)) || r.Took(k, at(0)) {
		t.Error("which halves had their part in the job that ended after 10 s")
	}
}

// TestRecordsAreBounded checks that records of strangers take no more than a fixed number of
// places.
func TestRecordsAreBounded(t *testing.T) {
	var r Record
	now := time.Unix(1000, 0)
	for i := range 3 * keep {
		run := Run{ID: fmt.Sprint(i)}
		r.Ended(run, "b", "why", now.Add(time.Hour))
		r.Over(run, now)
	}
	if len(r.ended) != keep || len(r.over) != keep {
		t.Errorf("%d halves, %d jobs", len(r.ended), len(r.over))
	}
	if r.Without(Run{ID: fmt.Sprint(3*keep - 1)}, "a", now) == "" || r.Without(Run{ID: "0"}, "a", now) != "" {
		t.Error("the oldest are to be forgotten first")
	}
}
