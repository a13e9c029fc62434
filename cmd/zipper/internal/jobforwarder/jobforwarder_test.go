package jobforwarder

import (
	"errors"
	"testing"
	"time"

	"go.uber.org/zap"

	"github.com/leidenzipper/zipper/handshake"
	"github.com/leidenzipper/zipper/internal/dial"
	"github.com/leidenzipper/zipper/internal/jobenv"
	"github.com/leidenzipper/zipper/internal/transport"
	"github.com/leidenzipper/zipper/internal/wire"
	"github.com/leidenzipper/zipper/launch"
)

// TestForwarderServesItsJobOnly checks that the forwarder of zipper run admits no rank without the
// job's secret, and that the end of other connections is not taken for the job's end.
func TestForwarderServesItsJobOnly(t *testing.T) {
	secret := jobenv.NewSecret()
	f, err := start(launch.Wanted{Job: "j", Secret: secret, Local: true}, zap.NewNop(), NATAuto)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	layout := []wire.Cluster{{Name: "a", Size: 1}, {Name: "b", Size: 1}}
	join := func(job, secret, cluster string) (transport.Link, error) {
		l, _, err := new(dial.Dialer).Dial(t.Context(), f.Address("127.0.0.1"),
			handshake.Identity{Job: job, Secret: secret, Cluster: cluster,
				Layout: layout, TagUB: 1, TimeoutMS: (20 * time.Second).Milliseconds()})
		return l, err
	}
	for _, stranger := range [][2]string{{"j", jobenv.NewSecret()}, {"k", jobenv.NewSecret()}, {"k", secret}} {
		_, err := join(stranger[0], stranger[1], "a")
		var refused *handshake.Refused
		if !errors.As(err, &refused) || refused.Code != wire.RefuseSecret && refused.Code != wire.RefuseJob {
			t.Errorf("job %s with another secret or id: %v", stranger[0], err)
		}
	}
	if v := f.View(); v.Known || v.Ended {
		t.Errorf("strangers have made it %+v", v)
	}
	type joined struct {
		link transport.Link
		err  error
	}
	all := make(chan joined, 2)
	for _, c := range layout {
		go func() {
			l, err := join("j", secret, c.Name)
			all <- joined{l, err}
		}()
	}
	var links []transport.Link
	for range layout {
		j := <-all
		if j.err != nil {
			t.Fatal(j.err)
		}
		links = append(links, j.link)
	}
	if v := f.View(); !v.Known || !v.Started {
		t.Errorf("the job runs, and is shown as %+v", v)
	}
	for _, l := range links {
		l.Close()
	}
	r := f.(*inProcess)
	<-r.ended
	r.mu.Lock()
	r.summary = nil // as between the end of the job and the call of jobEnd
	r.mu.Unlock()
	if v := f.View(); !v.Ended || !v.Started {
		t.Errorf("the job has ended, and is shown as %+v", v)
	}
}
