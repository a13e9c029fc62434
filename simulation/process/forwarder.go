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

// Forwarder is one, which may be started again.
type Forwarder struct {
	Addr  string
	Proc  *kernel.Process // of this life
	at    []string        // where it listens
	world *World
	host  *kernel.Host
	cfg   forwarder.Config
	f     *forwarder.Driven
	lives int
}

// NewForwarder starts one at an address, and at more, on a host; nil: its threads take no time. The
// configuration needs no listener, log and dialer.
func (w *World) NewForwarder(addr string, host *kernel.Host, cfg forwarder.Config, more ...string) *Forwarder {
	z := &Forwarder{Addr: addr, at: append([]string{addr}, more...), world: w, host: host, cfg: cfg}
	z.Start()
	return z
}

// Status is what it says of itself.
func (z *Forwarder) Status() forwarder.Status { return z.f.Status() }

// forwarderSystem is its operating system.
type forwarderSystem struct {
	*kernel.Kernel
	proc *kernel.Process
}

// Now is the virtual time.
func (s forwarderSystem) Now() time.Time { return time.Unix(1e9, 0).Add(s.Kernel.Now()) }

// AfterFunc calls when it is time, unless the process has been killed.
func (s forwarderSystem) AfterFunc(d time.Duration, fn func()) clock.Timer {
	return s.After(d, func() {
		if !s.proc.Dead() {
			fn()
		}
	})
}

// Go is a thread.
func (s forwarderSystem) Go(fn func()) { s.proc.Go(fn) }

// Start starts the forwarder, or the next one at its place.
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

// place is a listener that nobody asks.
type place string

// Accept is never called.
func (place) Accept() (transport.Link, error) { return nil, transport.ErrClosed }

// Addr is the place.
func (p place) Addr() string { return string(p) }

// Close has nothing to close.
func (place) Close() error { return nil }

// forwarderLog keeps what a forwarder logs.
type forwarderLog struct{ z *Forwarder }

// Enabled says yes if anybody reads it.
func (l forwarderLog) Enabled(zapcore.Level) bool { return l.z.world.Say != nil }

// With is for fields that all lines have.
func (l forwarderLog) With([]zapcore.Field) zapcore.Core { return l }

// Sync has nothing to do.
func (forwarderLog) Sync() error { return nil }

// Check takes all.
func (l forwarderLog) Check(e zapcore.Entry, c *zapcore.CheckedEntry) *zapcore.CheckedEntry {
	if l.Enabled(e.Level) {
		return c.AddCore(e, l)
	}
	return c
}

// Write tells.
func (l forwarderLog) Write(e zapcore.Entry, fields []zapcore.Field) error {
	m := zapcore.NewMapObjectEncoder()
	for _, f := range fields {
		f.AddTo(m)
	}
	l.z.world.Say("%s: %s %v", l.z.Proc.Name, e.Message, m.Fields)
	return nil
}
