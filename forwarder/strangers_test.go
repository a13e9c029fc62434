package forwarder

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/leidenzipper/zipper/handshake"
	"github.com/leidenzipper/zipper/handshake/handshaketest"
	"github.com/leidenzipper/zipper/internal/wire"
)

// stranger connects to the forwarder from an address of its own on the loopback network.
func (b *bench) stranger(from string) (net.Conn, error) {
	return handshaketest.Connect(from, b.ln.Addr(), patience)
}

// refusedWith reads until the forwarder refuses, or closes without a word.
func refusedWith(c net.Conn) (string, error) {
	for {
		h, body, err := handshaketest.ReadFrame(c)
		if err != nil {
			return "", err
		}
		if h.Type == wire.TypeRefuse {
			r, err := wire.ParseRefuse(body)
			return r.Reason, err
		}
	}
}

// counter is a log of which only the length is kept.
type counter struct{ n atomic.Int64 }

func (c *counter) Write(p []byte) (int, error) { c.n.Add(int64(len(p))); return len(p), nil }
func (c *counter) Sync() error                 { return nil }

// TestFloods checks that while one address does all that it may, a job joins from another one, the
// status answers, and the log stays small. It logs the times.
func TestFloods(t *testing.T) {
	huge := []wire.Cluster{{Name: "a", Size: 1}, {Name: "b", Size: wire.MaxRanks - 1}}
	join := func(id handshake.Identity, part int) func(net.Conn, int) {
		return func(c net.Conn, i int) {
			id := id
			id.Job = fmt.Sprintf("flood-%d", i)
			id.TimeoutMS = 1<<32 - 1
			if f, err := handshaketest.JoinFrame(c, id); err == nil {
				_, _ = c.Write(f[:len(f)*part/2])
			}
		}
	}
	for name, attack := range map[string]func(c net.Conn, i int){
		"connections":      func(net.Conn, int) {},
		"joins":            join(identity("", "a", 0, twoClusters...), 2),
		"incomplete joins": join(identity("", "a", 0, twoClusters...), 1),
		"huge joins":       join(identity("", "a", 0, huge...), 2),
		"malformed frames": func(c net.Conn, _ int) { _, _ = c.Write(make([]byte, 100)) },
	} {
		t.Run(name, func(t *testing.T) {
			const links, attempts, attackers = 300, 1500, 4
			var log counter
			b := start(t, tcpNetwork(), func(c *Config) {
				c.Log = zap.New(zapcore.NewCore(zapcore.NewConsoleEncoder(zap.NewDevelopmentEncoderConfig()), &log,
					zap.InfoLevel))
				c.MaxLinksFrom, c.MaxUnjoinedFrom, c.MaxGatheringFrom = links, links/2, 20
				c.MaxRanks, c.files = wire.MaxRanks, wire.MaxRanks
			})
			page := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				fmt.Fprint(w, b.f.Status().Links)
			}))
			defer page.Close()
			ctx, stop := context.WithCancel(context.Background())
			var flood sync.WaitGroup
			begun := make(chan struct{}, attackers*attempts)
			for a := range attackers {
				flood.Go(func() {
					for i := 0; i < attempts && ctx.Err() == nil; i++ {
						c, err := b.stranger("127.0.0.2")
						if err != nil {
							continue // closed at once
						}
						defer c.Close()
						attack(c, a*attempts+i)
						begun <- struct{}{}
					}
				})
			}
			for range links {
				<-begun
			}
			for i := range 3 {
				was := time.Now()
				r := b.join(name[:1]+fmt.Sprint("good-", i), twoClusters...)
				pingPong(t, r[0], r[2])
				t.Logf("a good job took %v to join", time.Since(was)) // test/e2e has a bound
				was = time.Now()
				answer, err := http.Get(page.URL)
				if err != nil {
					t.Fatal(err)
				}
				answer.Body.Close()
				t.Logf("the status took %v", time.Since(was))
			}
			s := b.f.Status()
			gathering := 0
			for _, j := range s.Jobs {
				if j.State == "gathering" {
					gathering++
				}
			}
			if gathering > 20 || s.Links > links+12 {
				t.Errorf("%d jobs gather, %d links", gathering, s.Links)
			}
			stop()
			flood.Wait()
			b.stop()
			if n := log.n.Load(); n > 100_000 {
				t.Errorf("%d bytes of log", n)
			}
		})
	}
}

// TestOldestUnjoinedLinkIsClosed checks that of one address's links that have not joined the oldest
// is closed and told why, and that those of other addresses stay.
func TestOldestUnjoinedLinkIsClosed(t *testing.T) {
	b := start(t, tcpNetwork(), func(c *Config) { c.MaxUnjoinedFrom = 2 })
	other, err := b.stranger("127.0.0.3")
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	var links []net.Conn
	for range 3 {
		c, err := b.stranger("127.0.0.2")
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		links = append(links, c)
	}
	if why, err := refusedWith(links[0]); err != nil || !strings.Contains(why, "the oldest from 127.0.0.2") {
		t.Errorf("the oldest: %q, %v", why, err)
	}
	for _, c := range append(links[1:], other) {
		if f, err := handshaketest.JoinFrame(c, identity("j", "a", 0, twoClusters...)); err != nil || len(f) == 0 {
			t.Errorf("a later one: %v", err)
		}
	}
}

// TestExcessJoinsAreRefused checks that joins beyond the bounds of the configuration are
// refused with a reason.
func TestExcessJoinsAreRefused(t *testing.T) {
	b := start(t, tcpNetwork(), func(c *Config) {
		c.MaxRanks, c.MaxGatheringFrom, c.MaxLinksFrom, c.MaxTimeout = 4, 1, 3, 300*time.Millisecond
	})
	try := func(id handshake.Identity, want string) {
		t.Helper()
		_, err := b.dial(id)
		var refused *handshake.Refused
		if !errors.As(err, &refused) || !strings.Contains(refused.Reason, want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
	try(identity("wide", "a", 0, wire.Cluster{Name: "a", Size: 4}, wire.Cluster{Name: "b", Size: 1}), "at most 4")
	long := identity("long", "a", 0, twoClusters...)
	long.TimeoutMS = 1<<32 - 1
	done := make(chan struct{})
	go func() { defer close(done); try(long, "is not complete after ") }()
	for len(b.f.Status().Jobs) == 0 {
		time.Sleep(time.Millisecond)
	}
	try(identity("second", "a", 0, twoClusters...), "1 jobs from 127.0.0.1")
	<-done
	b.settled()
	for i := range 4 {
		c, err := b.stranger("127.0.0.4")
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		if i == 3 {
			if why, err := refusedWith(c); err != nil || !strings.Contains(why, "3 links from 127.0.0.4") {
				t.Errorf("got %q, %v", why, err)
			}
		}
	}
}
