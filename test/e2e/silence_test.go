package e2e

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/leidenzipper/zipper/forwarder"
)

// TestSilentLinkReconnects lets no packet pass between a cluster and its only forwarder for a
// while, without closing a connection. The link is re-established, data in flight are sent again,
// and nothing is lost: the program checks every byte. 20 s and a sealed job with ZIPPER_LONG=1.
func TestSilentLinkReconnects(t *testing.T) {
	silence, levels := 9*time.Second, []string{"checked"} // longer than the patience for a link
	if long() {
		silence, levels = 20*time.Second, []string{"checked", "sealed"}
	}
	l := newLab(t)
	prog := l.b.Compile(OpenMPI, "test/programs/c/stream.c")
	job := l.job("ranks: 1", "ranks: 1")
	env := l.env
	for _, level := range levels {
		l.env = append(env[:len(env):len(env)], "ZIPPER_LEVEL="+level)
		p, more, stop := l.stream(prog, job)
		more("the stream to run")
		l.lab("on", "b1", "nft", "add table ip silent; "+
			"add chain ip silent in { type filter hook input priority 0; }; add rule ip silent in ip saddr 10.81.2.1 drop; "+
			"add chain ip silent out { type filter hook output priority 0; }; add rule ip silent out ip daddr 10.81.2.1 drop")
		time.Sleep(silence)
		select {
		case <-p.done:
			t.Fatalf("the job has not outlived %v of silence:\n%v", silence, p.Wait())
		default:
		}
		l.lab("on", "b1", "nft", "delete table ip silent")
		begin := time.Now()
		more("the stream to go on")
		t.Logf("it went on %.1f s after %v of silence", time.Since(begin).Seconds(), silence)
		var s forwarder.Status
		if err := json.Unmarshal([]byte(l.lab("on", "z1", l.b.Zipper, "status", "--json")), &s); err != nil {
			t.Fatal(err)
		}
		if len(s.Jobs) != 1 || s.Jobs[0].Level != level || s.Jobs[0].LostLinks == 0 {
			t.Errorf("level %s: no lost link in %+v", level, s.Jobs)
		}
		if s.Totals.Traffic.ResentFrames == 0 {
			t.Error("nothing was sent again")
		}
		stop()
	}
}
