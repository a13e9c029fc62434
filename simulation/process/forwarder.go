package process

import (
	"context"
	"fmt"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/leidenzipper/zipper/forwarder"
	"github.com/leidenzipper/zipper/forwarder/clock"
	"github.com/leidenzipper/zipper/internal/transport"
	"github.com/leidenzipper/zipper/simulation/kernel"
)

// Forwarder is a simulated forwarder, which can be killed and restarted.
type Forwarder struct {
	Addr  string
	Proc  *kernel.Process // current process; a restart replaces it
	at    []string        // addresses at which it listens
	world *World          // address that identifies the forwarder
	host  *kernel.Host
	cfg   forwarder.Config
	f     *forwarder.Driven // environment of the simulation
	lives int               // host whose cores it uses; nil if it takes no processor time
}

// NewForwarder starts a forwarder on a host that listens at addr and at more. With a nil host its
// threads take no processor time. The listeners, log and dialer in cfg are not used.
func (w *World) NewForwarder(addr string, host *kernel.Host, cfg forwarder.Config, more ...string) *Forwarder {
	z := &Forwarder{Addr: addr, at: append([]string{addr}, more...), world: w, host: host, cfg: cfg}
	z.Start()
	return z
}

// Status returns the forwarder's status report.
func (z *Forwarder) Status() forwarder.Status { return z.f.Status() }

// forwarderSystem is the operating system of a forwarder: clock, timers and threads.
type forwarderSystem struct {
	*kernel.Kernel
	proc *kernel.Process
}

// Now returns the virtual time.
func (s forwarderSystem) Now() time.Time { return time.Unix(1e9, 0).Add(s.Kernel.Now()) }

// AfterFunc calls fn after d, unless the process has been killed by then.
func (s forwarderSystem) AfterFunc(d time.Duration, fn func()) clock.Timer {
	return s.After(d, func() {
		if !s.proc.Dead() {
			fn()
		}
	})
}

// Go starts a thread of the process.
func (s forwarderSystem) Go(fn func()) { s.proc.Go(fn) }

// Start starts the forwarder, or restarts it if its process has been killed. It does nothing if the
// forwarder runs.
func (z *Forwarder) Start() {
	if z.Proc != nil && !z.Proc.Dead() {
		return
	}
	z.lives++
	proc := z.world.K.Process(fmt.Sprintf("%s.%d", z.Addr, z.lives))
	proc.On(z.host)
	cfg := z.cfg
	cfg.Listeners, cfg.Log = []transport.Listener{place(z.Addr)}, zap.New(forwarderLog{z})
	cfg.Dial = func(ctx context.Context, addr string, _ func(error)) (transport.Link, error) {
		e, err := z.world.Dial(ctx, proc, addr)
		if err != nil {
			return nil, err
		}
		return e, nil
	}
	f, err := forwarder.NewDriven(cfg, forwarderSystem{z.world.K, proc})
	if err != nil {
		panic(err)
	}
	z.Proc, z.f = proc, f
	for _, addr := range z.at {
		proc.Listen(addr, func(e *kernel.End) { f.Take(e) })
	}
	proc.Go(func() {
		for {
			f.Turn()
		}
	})
}

// place is a listener whose Accept is never called; kernel.Process.Listen takes its place.
type place string

// Accept returns an error. It is never called.
func (place) Accept() (transport.Link, error) { return nil, transport.ErrClosed }

// Addr returns the address.
func (p place) Addr() string { return string(p) }

// Close does nothing.
func (place) Close() error { return nil }

// forwarderLog passes the log of a forwarder to World.Say.
type forwarderLog struct{ z *Forwarder }

// Enabled reports whether World.Say is set.
func (l forwarderLog) Enabled(zapcore.Level) bool { return l.z.world.Say != nil }

// With returns l: it drops fields that all lines share.
func (l forwarderLog) With([]zapcore.Field) zapcore.Core { return l }

// Sync does nothing.
func (forwarderLog) Sync() error { return nil }

// Check adds the entry if the log is enabled.
func (l forwarderLog) Check(e zapcore.Entry, c *zapcore.CheckedEntry) *zapcore.CheckedEntry {
	if l.Enabled(e.Level) {
		return c.AddCore(e, l)
	}
	return c
}

// Write passes the entry to World.Say.
func (l forwarderLog) Write(e zapcore.Entry, fields []zapcore.Field) error {
	m := zapcore.NewMapObjectEncoder()
	for _, f := range fields {
		f.AddTo(m)
	}
	l.z.world.Say("%s: %s %v", l.z.Proc.Name, e.Message, m.Fields)
	return nil
}
