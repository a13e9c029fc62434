package forwarder

import (
	"strings"
	"testing"
	"time"

	"github.com/leidenzipper/zipper/internal/wire"
)

// TestStaleByeKeepsNewRoute checks that a Bye that is read from a connection after its rank has
// opened another one neither removes the new route nor counts as the rank's departure, in jobs of
// one hop and of several.
func TestStaleByeKeepsNewRoute(t *testing.T) {
	for name, job := range map[string]string{
		"one hop":      "job j a=1 b=1 patience=30s",
		"two railed":   "job j a=1 b=1 rails=2",
		"several hops": "job j a=1 b=1 networks=w patience=30s y:a,w z:b,w",
	} {
		t.Run(name, func(t *testing.T) {
			s := &script{t: t, now: &steppedClock{now: time.Unix(1e9, 0)}, zips: map[string]*scripted{},
				ends: map[string]*processEnd{}}
			t.Cleanup(s.close)
			b0 := "b0@y"
			if strings.Contains(job, "z:") {
				b0 = "b0@z"
			}
			do := func(lines ...string) {
				for _, line := range lines {
					s.do(strings.Fields(line))
				}
			}
			do("forwarder y trunk=1", "forwarder z", job, "join a0@y", "join "+b0, "aside", "aside")
			r := s.zips["y"].f.named("j")
			stale := peerOf(r.plane.Table[0].Load())
			do("join a0@y")
			renewed := peerOf(r.plane.Table[0].Load())
			if renewed == nil || renewed == stale {
				t.Fatalf("the rank has not come back:\n%s", s.out.String())
			}

			control{stale}.Frame(wire.Control(wire.TypeBye), nil)

			if got := peerOf(r.plane.Table[0].Load()); got != renewed {
				t.Errorf("the route leads to %v, want the new connection", got)
			}
			do("eager "+b0+" 0 10", "bye a0@y", "bye "+b0, "close a0@y", "close "+b0)
			for _, want := range []string{"y→a0@y Eager 1>0 size=10", "y: job j is over: ok=true"} {
				if !strings.Contains(s.out.String(), want) {
					t.Errorf("no %q in\n%s", want, s.out.String())
				}
			}
		})
	}
}
