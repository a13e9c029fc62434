// Package jobforwarder runs a forwarder inside this process, for the time of one job.
package jobforwarder

import (
	"context"
	"crypto/ed25519"
	"errors"
	"io"
	"net"
	"runtime"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/leidenzipper/zipper/forwarder"
	"github.com/leidenzipper/zipper/forwarder/loop"
	"github.com/leidenzipper/zipper/forwarder/nat"
	"github.com/leidenzipper/zipper/internal/dial"
	"github.com/leidenzipper/zipper/internal/transport"
	"github.com/leidenzipper/zipper/internal/wire"
	"github.com/leidenzipper/zipper/launch"
)

// settleTime is how long a forwarder has to notice that the links of an ended job are gone, so that
// its counts are complete.
const settleTime = 2 * time.Second

// shareOfTimeout is the part of the time-out after which ranks learn which ranks are missing, a
// third: 20 s of 60 s. The run watches the halves that it starts, so a half that fails is reported
// at once, and a half that is still starting, with its libraries on a busy file system, needs no
// warning.
const shareOfTimeout = 3

// inProcess is a forwarder inside this process.
type inProcess struct {
	job    string
	f      *forwarder.Forwarder
	key    string
	port   string
	cancel context.CancelFunc
	kernel io.Closer // the kernel's rules for the forwarder
	served chan struct{}
	ended  chan struct{} // closed with the first summary

	mu      sync.Mutex
	summary *forwarder.Summary
}

// Starter returns the function that starts forwarders for launch.Run. kernel says whether the
// kernel forwards connections between ranks on several hosts.
func Starter(log *zap.Logger, kernel NAT) func(context.Context, launch.Wanted) (launch.Forwarder, error) {
	return func(_ context.Context, w launch.Wanted) (launch.Forwarder, error) { return start(w, log, kernel) }
}

// start starts a forwarder on a free port: of the loopback interface, or of all interfaces when
// processes on other hosts have to reach it. It refuses ranks of other jobs, because a port that is
// open for all hosts must not be a service for their users.
func start(w launch.Wanted, log *zap.Logger, kernel NAT) (launch.Forwarder, error) {
	addr := ":0"
	if w.Local {
		addr = "127.0.0.1:0"
	}
	ln, err := dial.Listen(addr)
	if err != nil {
		return nil, err
	}
	_, port, err := net.SplitHostPort(ln.Addr())
	if err != nil {
		return nil, errors.Join(err, ln.Close())
	}
	public, private, err := ed25519.GenerateKey(nil)
	if err != nil {
		return nil, errors.Join(err, ln.Close())
	}
	r := &inProcess{job: w.Job, port: port, key: wire.FormatHostKey([wire.PublicKeyLen]byte(public)),
		served: make(chan struct{}), ended: make(chan struct{})}
	shown, quiet := log, !log.Core().Enabled(zap.InfoLevel)
	if quiet {
		log = zap.NewNop() // the run itself reports failures of the job
	}
	cfg := forwarder.Config{Listeners: []transport.Listener{ln}, Log: log.Named("forwarder"), JobEnd: r.jobEnd,
		Protocol: w.Protocol,
		Jobs:     []string{w.Job}, Secret: w.Secret, HostKey: private,
		Patience: max(forwarder.Patience, w.Timeout/shareOfTimeout)}
	SetThreads(loop.DefaultLoops())
	if w.Local { // ranks do not dial ports of the loopback interface that a forwarder names
		if kernel == NATOn {
			return nil, errors.Join(errors.New("--nat=on: all ranks run on this host, where messages are relayed; use --nat=auto"),
				ln.Close())
		}
		kernel = NATOff
	}
	table, err := kernel.Apply(&cfg)
	if err != nil {
		return nil, errors.Join(err, ln.Close())
	}
	if r.kernel = table; quiet {
		kernel.advises(&cfg, shown, nat.Privileged())
	}
	if r.f, err = forwarder.New(cfg); err != nil {
		return nil, errors.Join(err, table.Close(), ln.Close())
	}
	ctx, cancel := context.WithCancel(context.Background())
	r.cancel = cancel
	go func() {
		defer close(r.served)
		if err := r.f.Serve(ctx); err != nil {
			log.Error("the forwarder could not start", zap.Error(err))
		}
	}()
	return r, nil
}

// SetThreads gives every event loop a thread of its own, and one more to all others.
func SetThreads(loops int) {
	if runtime.GOMAXPROCS(0) < loops+1 {
		runtime.GOMAXPROCS(loops + 1)
	}
}

func (r *inProcess) jobEnd(s forwarder.Summary) {
	if s.Job != r.job { // a job that its processes have made beside it
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.summary == nil {
		r.summary = &s
		close(r.ended)
	}
}

func (r *inProcess) HostKey() string { return r.key }

func (r *inProcess) Address(host string) string { return net.JoinHostPort(host, r.port) }

func (r *inProcess) View() launch.View {
	r.mu.Lock()
	s := r.summary
	r.mu.Unlock()
	if s == nil {
		status := r.f.Status()
		for _, j := range status.Jobs {
			if j.Job == r.job {
				return launch.View{Known: true, Started: !j.Started.IsZero(), Missing: j.Missing, Reason: j.Reason,
					Lost: lost(j.Lost), Traffic: traffic(j.Traffic), Kernel: kernel(j.Kernel)}
			}
		}
		// The forwarder calls jobEnd a moment after the job has become one of the past.
		for i := range status.Past {
			if status.Past[i].Job == r.job {
				s = &status.Past[i]
			}
		}
	}
	if s == nil {
		return launch.View{}
	}
	return launch.View{Ended: true, Started: !s.Started.IsZero(), OK: s.OK, Code: int(s.Code), Reason: s.Reason,
		Lost: lost(s.Lost), Traffic: traffic(s.Traffic), Kernel: kernel(s.Kernel)}
}

func lost(in []forwarder.LostCluster) (out []launch.LostCluster) {
	for _, l := range in {
		out = append(out, launch.LostCluster(l))
	}
	return out
}

func kernel(k forwarder.KernelTraffic) launch.KernelTraffic {
	return launch.KernelTraffic{Messages: k.Messages, Bytes: k.PayloadBytes}
}

func traffic(in []forwarder.Traffic) (out []launch.Traffic) {
	for _, t := range in {
		out = append(out, launch.Traffic{From: t.From, To: t.To, Messages: t.Messages, Bytes: t.PayloadBytes,
			Overhead: t.HeaderBytes})
	}
	return out
}

// ClusterEnded implements launch.Forwarder.
func (r *inProcess) ClusterEnded(cluster string) { r.f.ClusterEnded(r.job, cluster) }

// Settle waits until the forwarder has noticed that the job's links are gone.
func (r *inProcess) Settle() {
	if v := r.View(); !v.Known {
		return // the job never started, or is over
	}
	select {
	case <-r.ended:
	case <-time.After(settleTime):
	}
}

func (r *inProcess) Close() {
	r.cancel()
	<-r.served
	_ = r.kernel.Close() // the kernel removes the table with this process in any case
}
