package forwarder

import (
	"strings"
	"testing"
	"time"

	"github.com/leidenzipper/zipper/forwarder/job"
	"github.com/leidenzipper/zipper/internal/wire"
)

// fourInARow has four clusters, which brokenRow joins by three forwarders in a row. The last of
// these is not started.
var fourInARow = []wire.Cluster{{Name: "a", Size: 2}, {Name: "b", Size: 1}, {Name: "c", Size: 1}, {Name: "d", Size: 1}}

func brokenRow(t *testing.T, secret string) *chain {
	return newChainOf(t, secret, fourInARow, [][]uint16{{0, 1}, {1, 2}, {2, 3}}, 2)
}

// missing waits until a forwarder knows of a missing link.
func (b *bench) missing(id, want string) {
	b.t.Helper()
	var last string
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(time.Millisecond) {
		if r := b.f.named(id); r != nil {
			r.mu.Lock()
			last = r.job.Missing("")
			r.mu.Unlock()
		}
		if strings.Contains(last, want) {
			return
		}
	}
	b.t.Fatalf("the forwarder does not learn %q, but %q", want, last)
}

// TestMissingBridgeIsReported checks that a forwarder that does not reach another one keeps trying,
// and that ranks that join elsewhere and time out meanwhile are told the reason and the remedy.
func TestMissingBridgeIsReported(t *testing.T) {
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
		ch.benches[0].missing("j", "no link to the forwarder z2, which this one dials once a rank has joined it")
		go join(1, 0, 1, patience)
		ch.benches[0].missing("j", want)
		go join(0, 1, 0, time.Millisecond)
		for range 3 {
			if err := <-errs; err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), job.Unreachable) {
				t.Errorf("with secret %q: %v", secret, err)
			}
		}
	}
}
