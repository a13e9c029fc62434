package engine

import (
	"testing"
	"time"

	"github.com/leidenzipper/zipper/internal/jobenv"
)

// TestRankWaitsAtRestartedForwarder checks that a rank that is early at a forwarder which has been
// restarted stays there until a late one has come, rather than giving up and coming again: ranks
// that take turns in that are never all there.
func TestRankWaitsAtRestartedForwarder(t *testing.T) {
	_, before := serve(t)
	proxies := [2]*proxy{newProxy(t, before), newProxy(t, before)}
	engines := joinEach(t, jobenv.Job{ID: "test", Secret: "s", Level: "checked", Timeout: 20 * time.Second},
		func(rank int, j *jobenv.Job) { j.Forwarders = []string{proxies[rank].ln.Addr().String()} }, 1, 1)
	ready(t, engines)

	early, late := proxies[0], proxies[1]
	_, after := serve(t)
	for _, p := range proxies {
		p.lead(after)
		p.kill()
	}
	had := early.links()
	early.revive()
	time.Sleep(3 * time.Second) // the time that the late rank takes
	late.revive()
	ready(t, engines)
	if n := early.links() - had; n != 1 {
		t.Errorf("the rank that waited has connected %d times", n)
	}
}
