package link

import (
	"context"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/leidenzipper/zipper/mmpi/engine/wait"
	"github.com/leidenzipper/zipper/mmpi/engine/world"
	"github.com/leidenzipper/zipper/transport"
	"github.com/leidenzipper/zipper/transport/memnet"
	"github.com/leidenzipper/zipper/wire"
)

// TestRefusedBefore: a forwarder that was started again refuses no more, but has a rank that comes
// back wait for the others. That is no reason to end the job as soon as if it still refused.
func TestRefusedBefore(t *testing.T) {
	here, _ := memnet.Pipe(memnet.Options{})
	attempts, answers := make(chan bool), make(chan error)
	u := &fakeUpper{}
	var lock sync.Mutex
	s, err := New(Config{World: &world.World{Clusters: []wire.Cluster{{Name: "a", Size: 1}, {Name: "b", Size: 1}}},
		Upper: u, Lock: &lock, Links: []transport.Link{here}, System: wait.NewLinux(),
		Redial: func(ctx context.Context, _ int, _ bool) (transport.Link, error) {
			select {
			case attempts <- true:
				return nil, <-answers
			case <-ctx.Done():
				return nil, ctx.Err()
			}
		}, Limits: Limits{NoRail: time.Minute}})
	if err != nil {
		t.Fatal(err)
	}
	u.set = s
	t.Cleanup(s.Close)
	later := func() string { // what has become of it when forwarders that refuse are given up
		lock.Lock()
		defer lock.Unlock()
		s.failover.checkReachable(s.rails[0].lostAt + 2*refusedFor)
		return u.failed
	}
	refused := fmt.Errorf("dial: %w", unix.ECONNREFUSED)
	lock.Lock()
	s.failover.lost(s.rails[0], io.EOF)
	lock.Unlock()
	<-attempts
	answers <- refused
	<-attempts
	if why := later(); why != "" {
		t.Fatalf("while it waits at the forwarder: %s", why)
	}
	answers <- refused
	for end := time.Now().Add(10 * time.Second); time.Now().Before(end); time.Sleep(time.Millisecond) {
		if why := later(); why != "" {
			if !strings.Contains(why, "connection refused") {
				t.Error(why)
			}
			return
		}
	}
	t.Error("a forwarder that refuses is not given up")
}
