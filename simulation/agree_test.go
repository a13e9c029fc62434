package simulation

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/leidenzipper/zipper/forwarder"
	"github.com/leidenzipper/zipper/internal/jobenv"
	"github.com/leidenzipper/zipper/mmpi/engine"
	"github.com/leidenzipper/zipper/simulation/kernel"
	"github.com/leidenzipper/zipper/simulation/process"
)

// TestAgreeTakesTwoWays checks that an agreement of four clusters takes no longer than twice the
// time of one way, which is 20 ms in this network, and 4 ms.
func TestAgreeTakesTwoWays(t *testing.T) {
	const way = 20 * time.Millisecond
	k := kernel.New(1)
	path := kernel.Path{Delay: way / 2, Buffer: 1 << 20}
	world := process.World{K: k, Dial: func(ctx context.Context, p *kernel.Process, addr string) (*kernel.End, error) {
		return p.Dial(ctx, addr, path)
	}}
	zip := world.NewForwarder("z", nil, forwarder.Config{})
	job := jobenv.Job{ID: "agree", Secret: "s", Timeout: time.Minute, Forwarders: []string{"z"}}
	for i := range 4 {
		job.Layout = append(job.Layout, jobenv.Cluster{Name: cluster(i), Size: 2})
	}
	var members []*process.Member
	took, over := time.Duration(0), 0
	for _, c := range job.Layout {
		board := new(process.Cluster)
		for local := range c.Size {
			m := world.NewMember(len(members), k.Process(fmt.Sprint("rank", len(members))), process.NewNative(board, local))
			members = append(members, m)
			e := process.Entry{Job: job, Local: local, Host: m.Proc.Name, Timeout: time.Minute, Patience: time.Minute,
				Silence: time.Minute, OnLoss: true}
			e.Job.Cluster = c.Name
			m.Proc.Go(func() {
				defer func() { over++ }()
				if err := m.Enter(&e, process.Clusters(&job)); err != nil {
					t.Error(err)
					return
				}
				comm, err := m.Comm()
				if err != nil {
					t.Error(err)
					return
				}
				k.Sleep(time.Second - k.Now()) // all begin at the same time
				var cell engine.Cell
				if err := m.Engine.Agree(comm, 3, &cell); err != nil {
					t.Error(err)
					return
				}
				for !cell.Done() {
					m.Engine.Progress(time.Millisecond)
				}
				took = max(took, k.Now()-time.Second)
				if cell.Err() != nil || cell.Tag != 3 {
					t.Errorf("%x, %v", cell.Tag, cell.Err())
				}
			})
		}
	}
	k.Run(func() bool { return over == len(members) || k.Now() > time.Minute })
	if over < len(members) || took == 0 || took > 2*way+4*time.Millisecond {
		t.Errorf("%d processes agreed; it took %v", over, took)
	}
	t.Logf("an agreement takes %v", took)
	for _, m := range members {
		m.Proc.Kill()
		m.Engine.Discard()
	}
	zip.Kill()
}
