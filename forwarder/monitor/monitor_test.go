package monitor

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"reflect"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/leidenzipper/zipper/forwarder"
	"github.com/leidenzipper/zipper/internal/wire"
)

type fixed struct{ s forwarder.Status }

func (f fixed) Status() forwarder.Status { return f.s }

func handlerOf(f Source, m *Metrics) http.Handler {
	return (&Shown{Forwarder: f, Metrics: m}).handler(newWatch(f, ""))
}

func (f fixed) Alive(context.Context) error { return nil }

// still stands still.
type still struct{ fixed }

func (still) Alive(ctx context.Context) error { return context.DeadlineExceeded }

func TestHealth(t *testing.T) {
	draining := fixed{forwarder.Status{Draining: true}}
	for _, c := range []struct {
		f      Source
		status int
		text   string
	}{{sample, http.StatusOK, "ok\n"}, {draining, http.StatusServiceUnavailable, "draining\n"},
		{still{draining}, http.StatusServiceUnavailable, "stands still\n"}} {
		w := httptest.NewRecorder()
		handlerOf(c.f, nil).ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/healthz", nil))
		if w.Code != c.status || w.Body.String() != c.text {
			t.Errorf("%d %q, want %d %q", w.Code, w.Body, c.status, c.text)
		}
	}
}

var sample = fixed{forwarder.Status{Protocol: 1, Started: time.Unix(1, 0).UTC(), Now: time.Unix(2, 0).UTC(),
	Addresses: []string{"127.0.0.1:7475"}, Loops: 2, Links: 3,
	Jobs: []forwarder.JobStatus{{Job: "j", Key: "00ff", State: "running", Level: "sealed", Ranks: 4, Joined: 4,
		QueuedBytes: 77, Clusters: []forwarder.ClusterStatus{{Name: "a", Size: 4, Host: "n1",
			Origin: "user=u slurm=7"}},
		Traffic: []forwarder.Traffic{{From: "a", To: "b", Messages: 5, PayloadBytes: 60, HeaderBytes: 70, Frames: 8}}},
		{Job: "j", Key: "00fe", State: "gathering", Clusters: []forwarder.ClusterStatus{}, Traffic: []forwarder.Traffic{}}},
	Past: []forwarder.Summary{{Job: "old", OK: true, Traffic: []forwarder.Traffic{}}},
	Totals: forwarder.Totals{OK: 9, Refused: map[string]uint64{"wrong secret": 3},
		Traffic: forwarder.Traffic{Messages: 1005, PayloadBytes: 1060, ResentFrames: 2}}}}

func TestStatus(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- Serve(ctx, ln, Shown{Forwarder: sample}) }()
	got, err := Fetch(context.Background(), ln.Addr().String())
	if err != nil || !reflect.DeepEqual(got, sample.s) {
		t.Errorf("got %+v, %v; want %+v", got, err, sample.s)
	}
	if r, err := http.Get("http://" + ln.Addr().String() + "/metrics"); err != nil ||
		r.StatusCode != http.StatusNotFound {
		t.Errorf("metrics were not asked for: %v, %v", r, err)
	}
	cancel()
	if err := <-served; err != nil {
		t.Errorf("Serve: %v", err)
	}
	if _, err := Fetch(context.Background(), ln.Addr().String()); err == nil ||
		!strings.Contains(err.Error(), "no forwarder") {
		t.Errorf("after the end: %v", err)
	}
}

func TestMetrics(t *testing.T) {
	s := httptest.NewServer(handlerOf(sample, NewMetrics("1.2")))
	defer s.Close()
	r, err := http.Get(s.URL + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	b, _ := io.ReadAll(r.Body)
	for _, want := range []string{
		`zipper_build_info{goversion="` + runtime.Version() + `",protocol="` + strconv.Itoa(wire.Version) + `",version="1.2"} 1`,
		`zipper_forwarder_links 3`, `zipper_forwarder_jobs{level="sealed",state="running"} 1`,
		`zipper_forwarder_jobs{level="plain",state="failed"} 0`, `zipper_forwarder_queued_bytes 77`,
		`zipper_forwarder_job_info{host="n1",key="00ff",level="sealed",origin="user=u slurm=7",state="running",user="",zipper_job="j"} 1`,
		`zipper_forwarder_job_payload_bytes_total{key="00ff",zipper_job="j"} 60`,
		`zipper_forwarder_messages_total 1005`, `zipper_forwarder_resent_frames_total 2`, `zipper_forwarder_payload_bytes_total 1060`,
		`zipper_forwarder_refused_joins_total{reason="wrong secret"} 3`, `zipper_forwarder_jobs_ended_total{result="ok"} 9`,
		`zipper_forwarder_gather_seconds_count 0`,
	} {
		if !strings.Contains(string(b), "\n"+want+"\n") {
			t.Errorf("no line %q in\n%s", want, b)
		}
	}
}

func TestFetchElsewhere(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "<html>") }))
	defer s.Close()
	if _, err := Fetch(context.Background(), strings.TrimPrefix(s.URL, "http://")); err == nil ||
		!strings.Contains(err.Error(), "is that a forwarder?") {
		t.Errorf("got %v", err)
	}
}

func TestFetchSaysWhatToDo(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := ln.Addr().String()
	go func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			io.WriteString(c, "\x01\x00\x00\x00\xff\xff\xff\xff\n\n") // as the port for ranks does
			c.Close()
		}
	}()
	ctx := context.Background()
	if _, err := Fetch(ctx, addr); err == nil || !strings.Contains(err.Error(), "the status is at port 7476") ||
		strings.Contains(err.Error(), "x00") {
		t.Errorf("another port: %v", err)
	}
	ln.Close()
	if _, err := Fetch(ctx, addr); err == nil || !strings.Contains(err.Error(), "start one with zipper forwarder") {
		t.Errorf("no forwarder on this host: %v", err)
	}
	if _, err := Fetch(ctx, "no.such.host.invalid:7476"); err == nil || !strings.Contains(err.Error(),
		"(ssh no.such.host.invalid zipper status)") {
		t.Errorf("no forwarder on the other host: %v", err)
	}
}

// hostile returns a forwarder with an old job of an honest user, n later jobs of strangers that run
// and n that gather, and past jobs. The names of strangers have the greatest length, and six times
// that in JSON.
func hostile(n int) fixed {
	name := strings.Repeat("<", wire.MaxName)
	clusters := slices.Repeat([]forwarder.ClusterStatus{{Name: name, Host: name, Origin: name, Size: 1}}, 16)
	traffic := slices.Repeat([]forwarder.Traffic{{From: name, To: name}}, 256)
	f := fixed{forwarder.Status{PID: 7, Config: "file", Past: []forwarder.Summary{}, Jobs: []forwarder.JobStatus{}}}
	for i := range n {
		f.s.Jobs = append(f.s.Jobs,
			forwarder.JobStatus{Job: fmt.Sprintf("<%0*d", wire.MaxName-1, i), State: "running", Clusters: clusters,
				Started: time.Unix(100, 0).UTC(), Traffic: traffic},
			forwarder.JobStatus{Job: fmt.Sprintf(">%0*d", wire.MaxName-1, i), State: "gathering", Clusters: clusters,
				Missing: strings.Repeat(name, 22), Traffic: []forwarder.Traffic{}})
	}
	for i := range 32 {
		f.s.Past = append(f.s.Past, forwarder.Summary{Job: fmt.Sprint(i), Clusters: clusters, Traffic: traffic})
	}
	f.s.Jobs = append(f.s.Jobs, forwarder.JobStatus{Job: "honest", State: "running",
		Started: time.Unix(10, 0).UTC(), Clusters: []forwarder.ClusterStatus{}, Traffic: []forwarder.Traffic{}})
	return f
}

// TestStatusIsBounded checks that with any jobs of strangers the status is short enough for Fetch,
// lists the oldest running jobs and the newest past jobs, and counts all others. FetchBrief gets
// the process id without any job.
func TestStatusIsBounded(t *testing.T) {
	f := hostile(2000)
	s := httptest.NewServer(handlerOf(f, nil))
	defer s.Close()
	at := strings.TrimPrefix(s.URL, "http://")
	r, err := http.Get(s.URL + "/status")
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	if n, err := io.Copy(io.Discard, r.Body); err != nil || n >= maxStatus {
		t.Errorf("%d bytes, %v; want fewer than %d", n, err, maxStatus)
	}
	got, err := Fetch(t.Context(), at)
	if err != nil {
		t.Fatal(err)
	}
	if n := len(got.Jobs) + got.MoreJobs; n != len(f.s.Jobs) || got.MoreJobs == 0 || len(got.Jobs) < 10 {
		t.Errorf("%d jobs listed and %d not, of %d", len(got.Jobs), got.MoreJobs, len(f.s.Jobs))
	}
	if !slices.ContainsFunc(got.Jobs, func(j forwarder.JobStatus) bool { return j.Job == "honest" }) {
		t.Error("the oldest job is not listed")
	}
	if n := len(got.Past); n == 0 || n+got.MorePast != 32 || got.Past[n-1].Job != "31" {
		t.Errorf("%d past jobs listed and %d not", n, got.MorePast)
	}
	small, err := FetchBrief(t.Context(), at)
	if err != nil || small.PID != 7 || small.Config != "file" || len(small.Jobs) != 0 || len(small.Past) != 0 ||
		small.MoreJobs != len(f.s.Jobs) {
		t.Errorf("brief: %+v, %v", small, err)
	}
}

// TestBriefOfOlderForwarder checks that FetchBrief understands a forwarder that ignores the
// parameter, and reports an answer that is too long.
func TestBriefOfOlderForwarder(t *testing.T) {
	text := []byte(`{"pid":7,"jobs":[{"job":"a"},{"job":"b"}],"past":[]}`)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.Write(text) }))
	defer s.Close()
	at := strings.TrimPrefix(s.URL, "http://")
	if got, err := FetchBrief(t.Context(), at); err != nil || got.PID != 7 || got.MoreJobs != 2 {
		t.Errorf("%+v, %v", got, err)
	}
	text = slices.Concat([]byte(`{"pid":`), bytes.Repeat([]byte(" "), maxStatus), []byte(`7}`))
	if _, err := FetchBrief(t.Context(), at); err == nil || !strings.Contains(err.Error(), "more than 16 MiB") {
		t.Errorf("an endless status: %v", err)
	}
}

// TestPagesOfStrangers checks that both pages stay readable with as many jobs as strangers may
// open, of as many clusters as a status lists.
func TestPagesOfStrangers(t *testing.T) {
	name := strings.Repeat("n", wire.MaxName)
	var f fixed
	for i := range forwarder.MaxGathering {
		j := forwarder.JobStatus{Job: fmt.Sprintf("%0*d", wire.MaxName, i), Key: strings.Repeat("0", 16),
			State: "gathering", MoreClusters: 240,
			Missing: strings.Repeat(name, 22), Traffic: []forwarder.Traffic{}}
		for range 16 {
			j.Clusters = append(j.Clusters, forwarder.ClusterStatus{Name: name, Size: 1})
		}
		f.s.Jobs = append(f.s.Jobs, j)
	}
	s := httptest.NewServer(handlerOf(f, NewMetrics("")))
	defer s.Close()
	got, err := Fetch(t.Context(), strings.TrimPrefix(s.URL, "http://"))
	if err != nil || len(got.Jobs) != forwarder.MaxGathering {
		t.Errorf("%d jobs, %v", len(got.Jobs), err)
	}
	r, err := http.Get(s.URL + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	b, err := io.ReadAll(r.Body)
	if err != nil || r.StatusCode != http.StatusOK || len(b) > 1<<20 {
		t.Errorf("metrics of %d bytes: %v, %v", len(b), r.Status, err)
	}
}
