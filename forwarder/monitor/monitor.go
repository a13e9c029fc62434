// Package monitor shows a forwarder's status over HTTP: a page for people at /, JSON at /status,
// health at /healthz, and Prometheus metrics at /metrics if wanted. It reveals job ids, users and
// counts, no secrets; let it listen on the loopback address unless the network is trusted.
package monitor

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"sync"

	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/leidenzipper/zipper/forwarder"
)

// Source is a forwarder that reports its status, and that it works.
type Source interface {
	Status() forwarder.Status
	Alive(ctx context.Context) error
}

// Shown is a forwarder and the additional information that is shown.
type Shown struct {
	Forwarder Source
	Version   string   // the version of the program
	Metrics   *Metrics // the metrics; nil if Prometheus is not supported
}

// handler returns the handler of HTTP requests for the status, the page and the metrics. w.run must
// be in progress, or the page is not updated.
func (s *Shown) handler(w *watch) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /status", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		// an error means that the client has gone
		_ = writeStatus(w, s.Forwarder.Status(), r.URL.Query().Has(brief))
	})
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, r *http.Request) { health(w, r, s.Forwarder) })
	w.addPage(mux)
	if s.Metrics != nil {
		mux.Handle("GET /metrics", promhttp.HandlerFor(s.Metrics.of(s.Forwarder), promhttp.HandlerOpts{}))
	}
	return guard(mux)
}

// Serve answers HTTP requests for a forwarder's status on a listener until ctx ends; then it
// returns nil. It closes the listener.
func Serve(ctx context.Context, ln net.Listener, shown Shown) error {
	w := newWatch(shown.Forwarder, shown.Version)
	ctx, cancel := context.WithCancel(ctx)
	var watching sync.WaitGroup
	watching.Go(func() { w.run(ctx) })
	defer watching.Wait()
	defer cancel()
	open := &conns{limit: maxConns}
	s := &http.Server{Handler: shown.handler(w), ReadHeaderTimeout: headerTime, MaxHeaderBytes: headerBytes,
		WriteTimeout: writeTime, IdleTimeout: idleTime, ConnState: open.changed}
	stop := context.AfterFunc(ctx, func() { s.Close() })
	defer stop()
	if err := s.Serve(ln); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("status server: %w", err)
	}
	return nil
}

// explain returns a text for the user that says what is wrong, and what to do, when the status at
// an address cannot be fetched because of err.
func explain(addr string, err error) string {
	host, port, _ := net.SplitHostPort(addr)
	advice := ": start one with zipper forwarder, or ask on the zipper node (ssh HOST zipper status)"
	if ip := net.ParseIP(host); host != "localhost" && !ip.IsLoopback() {
		advice = fmt.Sprintf("; it answers on the loopback address of its own host unless --status says otherwise (ssh %s zipper status)", host)
	}
	var op *net.OpError
	switch {
	case errors.As(err, &op) && op.Op == "dial":
		return op.Err.Error() + advice
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return err.Error()
	}
	// The port for ranks speaks first and then says that it was no Join: which error that is
	// depends on who was faster, and may hold all the bytes.
	return fmt.Sprintf("the program that listens at port %s does not speak HTTP; the status is at port %d, and ranks connect to another port", port, DefaultPort)
}

// brief is the query parameter that asks for a status which counts jobs instead of listing them. A
// forwarder of release 0.1.0 ignores it.
const brief = "brief"

// Fetch asks the forwarder whose status is shown at "host:port". Jobs are in the order of their
// ids. MoreJobs and MorePast count those for which the answer, of at most 16 MiB, has no room.
func Fetch(ctx context.Context, addr string) (forwarder.Status, error) {
	return fetch(ctx, addr, "/status")
}

// FetchBrief asks the forwarder whose status is shown at "host:port", but gets no lists of jobs:
// MoreJobs counts all jobs.
func FetchBrief(ctx context.Context, addr string) (forwarder.Status, error) {
	s, err := fetch(ctx, addr, "/status?"+brief)
	s.MoreJobs, s.Jobs = s.MoreJobs+len(s.Jobs), nil
	return s, err
}

func fetch(ctx context.Context, addr, path string) (forwarder.Status, error) {
	var s forwarder.Status
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+addr+path, nil)
	if err != nil {
		return s, fmt.Errorf("status address %q: %w", addr, err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return s, fmt.Errorf("no forwarder shows its status at %s: %s", addr, explain(addr, err))
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return s, fmt.Errorf("status at %s: %s (is that a forwarder?)", addr, resp.Status)
	}
	body := &io.LimitedReader{R: resp.Body, N: maxStatus}
	switch err := json.NewDecoder(body).Decode(&s); {
	case err != nil && body.N <= 0:
		return s, fmt.Errorf("status at %s: more than %d MiB, which no forwarder of this release sends; "+
			"one of release 0.1.0 does if it has thousands of jobs", addr, maxStatus>>20)
	case err != nil:
		return s, fmt.Errorf("status at %s: %w (is that a forwarder?)", addr, err)
	}
	slices.SortStableFunc(s.Jobs, func(a, b forwarder.JobStatus) int { return cmp.Compare(a.Job, b.Job) })
	return s, nil
}
