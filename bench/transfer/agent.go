package transfer

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"runtime"
	"sync"

	"github.com/leidenzipper/zipper/internal/agent"
	"github.com/leidenzipper/zipper/mmpi/boot"
	"github.com/leidenzipper/zipper/mmpi/engine"
)

// Serve runs an agent: it listens for other agents' streams on any free port and carries out the
// session on r and w until r ends.
func Serve(ctx context.Context, r io.Reader, w io.Writer) error {
	ln, err := net.Listen("tcp", ":0")
	if err != nil {
		return err
	}
	defer ln.Close()
	m := &mover{ctx: ctx, arrived: make(map[uint64]chan net.Conn)}
	go m.accept(ln)
	return agent.Serve(r, w, answer{Port: ln.Addr().(*net.TCPAddr).Port}, func(q request) answer {
		x, err := m.do(q)
		if err != nil {
			x.Error = err.Error()
		}
		return x
	})
}

// mover has the state of an agent.
type mover struct {
	ctx     context.Context
	engines []*peerEngine
	batch   *running
	player  *player

	mu sync.Mutex
	// arrived has streams by message, from either side.
	arrived map[uint64]chan net.Conn
}

type peerEngine struct {
	*engine.Engine
	comm *engine.Comm
}

func (m *mover) do(q request) (answer, error) {
	switch {
	case q.Join != nil:
		return answer{}, m.join(q.Join)
	case q.Ready != nil:
		return answer{}, m.ready(q.Ready)
	case q.Play != nil:
		return answer{}, m.rehearse(q.Play)
	case q.Go && m.player != nil:
		x := m.player
		m.player = nil
		return x.play()
	case q.Go:
		return m.run(q.At)
	case q.Leave:
		return answer{}, m.leave()
	case q.Drop && len(m.engines) > 0:
		last := m.engines[len(m.engines)-1]
		m.engines = m.engines[:len(m.engines)-1]
		return answer{}, last.Finish()
	case q.Copy:
		rate, err := copyRate()
		return answer{Rate: rate}, err
	case q.Costs:
		c, err := costs()
		return answer{Costs: &c}, err
	}
	return answer{}, errors.New("an empty request")
}

func (m *mover) join(q *joinRequest) error {
	for _, job := range q.Jobs {
		size := 0
		for _, c := range job.Layout {
			if c.Name == job.Cluster {
				size = c.Size
			}
		}
		e, w, err := boot.Join(m.ctx, job, boot.Local{Rank: q.Rank, Size: size, TagUB: 1<<31 - 1, Library: "none",
			Host: q.Host, Getenv: os.Getenv},
			engine.Alone{Failed: func(reason string) { fmt.Fprintln(os.Stderr, "zipper:", reason) }})
		if err != nil {
			return err
		}
		if e == nil {
			return errors.New("a job of one cluster needs no forwarder")
		}
		// For the engine the ranks of the other clusters are remote, and those of the own cluster
		// are native: messages to them are streams, which it does not see.
		world, native := make([]int32, w.Size()), make([]int32, w.Size())
		_, first := w.Place(w.Rank)
		for i := range world {
			world[i], native[i] = int32(i), engine.Remote
			if i >= first && i < first+size {
				native[i] = int32(i - first)
			}
		}
		comm, err := e.AddComm(1, engine.WorldContext, w.Rank, world, native)
		if err != nil {
			return err
		}
		m.engines = append(m.engines, &peerEngine{e, comm})
	}
	// An engine has two threads that sleep in system calls. Each of them keeps its P until Go's
	// monitor takes that away, which is late where the monitor has a long timer slack.
	runtime.GOMAXPROCS(max(runtime.GOMAXPROCS(0), 2*len(m.engines)+2))
	return nil
}

func (m *mover) leave() error {
	errs := make([]error, len(m.engines))
	var wg sync.WaitGroup
	for i, e := range m.engines {
		wg.Go(func() { errs[i] = e.Finish() })
	}
	wg.Wait()
	m.engines = nil
	return errors.Join(errs...)
}
