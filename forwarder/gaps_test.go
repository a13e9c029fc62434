package forwarder

import (
	"strings"
	"testing"
	"time"

	"github.com/leidenzipper/zipper/wire"
)

// A row of four clusters over three forwarders, of which the last is not there.
var fourInARow = []wire.Cluster{{Name: "a", Size: 2}, {Name: "b", Size: 1}, {Name: "c", Size: 1}, {Name: "d", Size: 1}}

func brokenRow(t *testing.T, secret string) *chain {
	return newChainOf(t, secret, fourInARow, [][]uint16{{0, 1}, {1, 2}, {2, 3}}, 2)
}

// lacks waits until a forwarder knows of a link that is missing.
func (b *bench) lacks(job, want string) {
	b.t.Helper()
	var last string
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(time.Millisecond) {
		b.f.mu.Lock()
		if j := b.f.jobs.named(job); j != nil {
			last = j.hops.gaps(nil)
		}
		b.f.mu.Unlock()
		if strings.Contains(last, want) {
			return
		}
	}
	b.t.Fatalf("the forwarder does not learn %q, but %q", want, last)
}

// TestGapsTold: a forwarder that does not reach another one goes on trying; ranks that join
// elsewhere and lose patience meanwhile are told why, and what to do.
func TestGapsTold(t *testing.T) {
	for secret, want := range map[string]string{
		"s3cret": "the forwarder z1 says: no link to the forwarder z2 (memnet: ",
		"":       "the forwarder z1 says: no link to the forwarder z2: is that", // strangers do not learn what is there
	} {
		ch := brokenRow(t, secret)
		errs := make(chan error, 3)
		join := func(cluster, rank, zipper int, timeout time.Duration) {
			id := ch.identity("j", cluster, rank, zipper)
			id.TimeoutMS = timeout.Milliseconds()
			_, err := ch.benches[zipper].dial(id)
			errs <- err
		}
		go join(0, 0, 0, patience)
		ch.benches[0].lacks("j", "no link to the forwarder z2, which this one dials once a rank has joined it")
		go join(1, 0, 1, patience)
		ch.benches[0].lacks("j", want)
		go join(0, 1, 0, time.Millisecond)
		for range 3 {
			if err := <-errs; err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), unreached) {
				t.Errorf("with secret %q: %v", secret, err)
			}
		}
	}
}

// TestGapsBounded: another forwarder that says much of its links has little of that kept and passed
// on.
func TestGapsBounded(t *testing.T) {
	ch := brokenRow(t, "")
	go ch.benches[0].dial(ch.identity("j", 0, 0, 0))
	ch.benches[0].lacks("j", "no link to the forwarder z2")
	liar := ch.benches[0].f
	for i := range 3 * maxGapNotices {
		liar.mu.Lock()
		liar.jobs.named("j").hops.bridges[1].send(wire.TypeNotice,
			&wire.Notice{Text: name(i) + strings.Repeat("é", maxGapText)})
		liar.mu.Unlock()
	}
	f := ch.benches[1].f
	told := func() (br *bridge, notices int) {
		f.mu.Lock()
		defer f.mu.Unlock()
		br = f.jobs.named("j").hops.bridges[0]
		return br, br.notices
	}
	br, n := told()
	for end := time.Now().Add(patience); n < 3*maxGapNotices; time.Sleep(time.Millisecond) {
		if br, n = told(); time.Now().After(end) {
			t.Fatalf("%d notices came", n)
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if !strings.HasPrefix(br.lacks, name(maxGapNotices-1)) || len(br.lacks) > maxGapText+len("…") {
		t.Errorf("kept: %d bytes, %q", len(br.lacks), br.lacks[:20])
	}
}
