package monitor

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/leidenzipper/zipper/forwarder"
)

// named is a connection that says whether it was closed.
type named struct {
	net.Conn
	name   string
	closed *[]string
}

func (n *named) Close() error { *n.closed = append(*n.closed, n.name); return nil }

// TestOldestConnectionWithoutRequestIsClosed checks that of too many connections the oldest without
// a request is closed, or otherwise the oldest.
func TestOldestConnectionWithoutRequestIsClosed(t *testing.T) {
	var closed []string
	c := &conns{limit: 3}
	all := map[string]*named{}
	for _, step := range []struct {
		name  string
		state http.ConnState
		want  []string // closed so far
	}{
		{"a", http.StateNew, nil},
		{"a", http.StateActive, nil},
		{"b", http.StateNew, nil},
		{"c", http.StateNew, nil},
		{"d", http.StateNew, []string{"b"}},
		{"b", http.StateClosed, []string{"b"}}, // the server hears of it later
		{"c", http.StateActive, []string{"b"}},
		{"d", http.StateActive, []string{"b"}},
		{"e", http.StateNew, []string{"b", "a"}},
		{"a", http.StateIdle, []string{"b", "a"}},
		{"c", http.StateClosed, []string{"b", "a"}},
		{"f", http.StateNew, []string{"b", "a"}},
		{"d", http.StateIdle, []string{"b", "a"}},
		{"g", http.StateNew, []string{"b", "a", "d"}},
	} {
		if all[step.name] == nil {
			all[step.name] = &named{name: step.name, closed: &closed}
		}
		c.changed(all[step.name], step.state)
		if !slices.Equal(closed, step.want) {
			t.Fatalf("after %s is %v: %q are closed, want %q", step.name, step.state, closed, step.want)
		}
		if len(c.list) > c.limit {
			t.Fatalf("%d connections", len(c.list))
		}
	}
}

// TestConnectionsAreBounded checks that clients that keep connections open leave others room. The
// oldest of their connections are closed, pages stay open, and a request is answered.
func TestConnectionsAreBounded(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() {
		served <- Serve(ctx, ln, Shown{Forwarder: fixed{forwarder.Status{PID: 7, Now: time.Unix(1, 0)}}})
	}()
	defer func() {
		cancel()
		if err := <-served; err != nil {
			t.Error(err)
		}
	}()
	// open connects, and reads the answer's head.
	open := func(path string) (net.Conn, *bufio.Reader) {
		t.Helper()
		c, err := net.Dial("tcp", ln.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		_ = c.SetDeadline(time.Now().Add(idleTime / 2)) // sooner than an idle connection is closed
		fmt.Fprintf(c, "GET %s HTTP/1.1\r\nHost: localhost\r\n\r\n", path)
		r := bufio.NewReader(c)
		answer, err := http.ReadResponse(r, nil)
		if err != nil || answer.StatusCode != http.StatusOK {
			t.Fatalf("%s: %v, %v", path, answer, err)
		}
		if path != "/events" {
			_, _ = io.Copy(io.Discard, answer.Body)
		}
		return c, r
	}
	var pages []*bufio.Reader
	for range maxWatchers {
		_, r := open("/events")
		pages = append(pages, r)
	}
	var idle []*bufio.Reader
	for range 3 * maxConns {
		_, r := open("/healthz")
		idle = append(idle, r)
	}
	if s, err := Fetch(t.Context(), ln.Addr().String()); err != nil || s.PID != 7 {
		t.Errorf("%+v, %v", s, err)
	}
	closed := make(chan error, len(idle))
	for _, r := range idle {
		go func() {
			_, err := r.ReadByte()
			closed <- err
		}()
	}
	for i := range len(idle) - (maxConns - maxWatchers) {
		if err := <-closed; err != io.EOF {
			t.Fatalf("%d of %d idle connections were closed, then %v", i, len(idle), err)
		}
	}
	for i, r := range pages {
		for range 2 { // two views: the first may have been on its way
			if _, err := r.ReadString('}'); err != nil {
				t.Fatalf("page %d: %v", i, err)
			}
		}
	}
}
