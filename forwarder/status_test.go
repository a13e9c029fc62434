package forwarder

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/leidenzipper/zipper/forwarder/jobreport"
	"github.com/leidenzipper/zipper/forwarder/report"
	"github.com/leidenzipper/zipper/internal/wire"
)

// TestStatusOfManyClusters checks that the status stays readable with as many clusters as a
// stranger may name, both while the job gathers and after messages between all pairs of ranks.
func TestStatusOfManyClusters(t *testing.T) {
	b := start(t, tcpNetwork(), nil)
	var layout []wire.Cluster
	for i := range wire.MaxClusters {
		layout = append(layout, wire.Cluster{Name: fmt.Sprintf("%020d", i), Size: 1})
	}
	size := func(what string, want int) Status {
		t.Helper()
		s := b.f.Status()
		text, err := json.Marshal(s)
		if err != nil || len(text) > want {
			t.Errorf("%s: %d bytes, %v", what, len(text), err)
		}
		return s
	}
	errs := make(chan error, 1)
	go func() {
		_, err := b.dial(identity("waits", layout[0].Name, 0, layout...))
		errs <- err
	}()
	for len(b.f.Status().Jobs) == 0 && len(errs) == 0 {
	}
	size("gathering", 4<<10)
	r := b.join("j", layout...)
	n := 40 // more than report.MaxDirections of them
	for from := range n {
		for to := range n {
			if from != to {
				r[from].send(eager(from, to, 1, make([]byte, from+1)))
			}
		}
	}
	for to := range n {
		for range n - 1 {
			r[to].expect(wire.TypeEager)
		}
	}
	s := size("running", 128<<10)
	for _, j := range s.Jobs {
		if j.Job != "j" {
			continue
		}
		var messages uint64
		for _, d := range j.Traffic {
			messages += d.Messages
		}
		last := j.Traffic[len(j.Traffic)-1]
		if len(j.Traffic) != report.MaxDirections+1 || messages != uint64(n*(n-1)) || last.From != report.Others ||
			j.MoreClusters != wire.MaxClusters-jobreport.MaxClusters {
			t.Errorf("%d directions with %d messages, the last from %s; %d more clusters", len(j.Traffic), messages,
				last.From, j.MoreClusters)
		}
	}
	b.stop()
	<-errs
}

// TestTotalsStay checks that the totals keep the counts of a job that has ended, and count refusals
// by reason.
func TestTotalsStay(t *testing.T) {
	b := start(t, tcpNetwork(), nil)
	layout := []wire.Cluster{{Name: "a", Size: 1}, {Name: "b", Size: 1}}
	r := b.join("j", layout...)
	r[0].send(eager(0, 1, 1, make([]byte, 100)))
	r[1].expect(wire.TypeEager)
	again := eager(0, 1, 2, make([]byte, 50))
	wire.MarkResent(again)
	r[0].send(again)
	r[1].expect(wire.TypeEager)
	before := b.f.Status()
	if got := before.Totals.Traffic; got.Messages != 2 || got.PayloadBytes != 150 || got.ResentFrames != 1 ||
		before.Totals.OK != 0 {
		t.Errorf("while it runs: %+v", before.Totals)
	}
	if _, err := b.dial(identity("k", "c", 0, layout...)); err == nil {
		t.Error("a rank of no cluster is in")
	}
	for _, x := range r {
		x.bye()
	}
	b.ended()
	after := b.f.Status()
	want := before.Totals.Traffic
	if after.Totals.Traffic != want || after.Totals.OK != 1 || after.Totals.Links != 3 || len(after.Jobs) != 0 {
		t.Errorf("afterwards: %+v, want traffic %+v", after.Totals, want)
	}
	n := uint64(0)
	for _, k := range after.Totals.Refused {
		n += k
	}
	if n != 1 {
		t.Errorf("refused: %v", after.Totals.Refused)
	}
	b.stop()
}
