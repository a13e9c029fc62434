package monitor

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/leidenzipper/zipper/forwarder"
)

// steady is a forwarder whose one job moves 1000 bytes a second, and whose cluster b is full for
// half of the time; each look is two seconds later.
type steady struct{ n int }

func (s *steady) Alive(context.Context) error { return nil }

func (s *steady) Status() forwarder.Status {
	s.n++
	at := time.Unix(1000, 0).Add(time.Duration(s.n) * step)
	moved := uint64(s.n) * uint64(1000*step.Seconds())
	return forwarder.Status{Now: at, Totals: forwarder.Totals{Traffic: forwarder.Traffic{PayloadBytes: moved}},
		Jobs: []forwarder.JobStatus{
			{Job: "waits", State: "gathering", Missing: "rank 1 of cluster b", Traffic: []forwarder.Traffic{}},
			{Job: "j", State: "running", Started: time.Unix(1000, 0),
				Clusters: []forwarder.ClusterStatus{{Name: "a", Size: 1},
					{Name: "b", Size: 2, Blocked: float64(s.n) * step.Seconds()}},
				Traffic: []forwarder.Traffic{{From: "a", To: "b", Messages: uint64(s.n), PayloadBytes: moved,
					Frames: 1}}}}}
}

func viewOf(t *testing.T, w *watch) (v View) {
	t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := json.Unmarshal(w.view(), &v); err != nil {
		t.Fatal(err)
	}
	return v
}

func TestRates(t *testing.T) {
	w := newWatch(&steady{}, "1")
	for range ratesKept + 10 {
		w.look()
	}
	v := viewOf(t, w)
	if len(v.Rates) != ratesKept || v.Rates[0] != 1000 || v.Rates[ratesKept-1] != 1000 {
		t.Errorf("%d rates: %v", len(v.Rates), v.Rates)
	}
	if len(v.Jobs) != 2 || v.Jobs[0].Job != "j" || v.Jobs[1].Missing == "" {
		t.Fatalf("jobs: %+v", v.Jobs)
	}
	j := v.Jobs[0]
	if j.Rate != 1000 || j.MinuteRate != 1000 || j.MessageRate != 1/step.Seconds() || j.Rates[0] != 1000 ||
		j.Limited != "Limited by cluster b: its links were full 50 % of the time" {
		t.Errorf("%v, %v bytes, %v messages a second, limited: %q", j.Rate, j.MinuteRate, j.MessageRate, j.Limited)
	}
	if len(w.past) != minuteSteps || len(w.past[0].Jobs) != 1 {
		t.Errorf("kept: %d statuses of %d jobs", len(w.past), len(w.past[0].Jobs))
	}
}

// TestViewIsBounded checks that the page gets no more than maxView bytes a step, with the oldest
// running jobs first.
func TestViewIsBounded(t *testing.T) {
	f := hostile(200)
	w := newWatch(f, "1")
	w.look()
	w.look()
	v := viewOf(t, w)
	if n := len(w.view()); n > maxView {
		t.Errorf("%d bytes, want at most %d", n, maxView)
	}
	if len(v.Jobs) == 0 || v.Jobs[0].Job != "honest" || len(v.Jobs)+v.MoreJobs != len(f.s.Jobs) {
		t.Errorf("%d jobs and %d more", len(v.Jobs), v.MoreJobs)
	}
	if n := len(w.past[1].Jobs); n > jobsShown {
		t.Errorf("%d jobs are kept for rates", n)
	}
}

// TestEvents checks that a page gets a view at once and one each step, that no view is sent to too
// many pages, and that all pages end with the watch.
func TestEvents(t *testing.T) {
	w := newWatch(&steady{}, "1")
	w.look()
	s := httptest.NewServer((&Shown{Forwarder: w.f}).handler(w))
	defer s.Close()
	var first, last <-chan []byte
	for range maxWatchers {
		c, leave := w.subscribe()
		defer leave()
		if first == nil {
			first = c
		}
		last = c
	}
	if r, err := http.Get(s.URL + "/events"); err != nil || r.StatusCode != http.StatusServiceUnavailable {
		t.Errorf("one more: %v, %v", r, err)
	}
	if text := <-last; !strings.Contains(string(text), `"version":"1"`) {
		t.Errorf("got %s", text)
	}
	w.look()
	w.look() // a slow page misses a view
	if text := <-last; !json.Valid(text) {
		t.Errorf("got %s", text)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	w.run(ctx)
	for range first {
	}
	if c, _ := w.subscribe(); c != nil {
		t.Error("a page is let in after the end")
	}
}

// TestPageTellsWhetherKernelForwards checks the text of the page about the kernel.
func TestPageTellsWhetherKernelForwards(t *testing.T) {
	for _, c := range []struct {
		status forwarder.Status
		want   string
	}{
		{forwarder.Status{NAT: true}, "forwards connections of ranks"},
		{forwarder.Status{NAT: true, NATFailure: "no buffer space"}, "forwards no new connections: no buffer space"},
		{forwarder.Status{NATOff: "--nat=off"}, "forwards nothing: --nat=off"},
	} {
		if got := kernel(&c.status); got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
}
