package process

import (
	"context"
	"fmt"
	"net/netip"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/leidenzipper/zipper/forwarder"
	"github.com/leidenzipper/zipper/forwarder/clock"
	"github.com/leidenzipper/zipper/forwarder/nat"
	"github.com/leidenzipper/zipper/internal/transport"
	"github.com/leidenzipper/zipper/simulation/kernel"
)

// Forwarder is a simulated forwarder, which can be killed and restarted.
type Forwarder struct {
	Addr  string            // address that identifies the forwarder
	Proc  *kernel.Process   // current process; a restart replaces it
	NAT   *NAT              // kernel of its host; nil unless World.NAT is set
	home  netip.Addr        // address of its host; invalid unless World.NAT is set
	at    []string          // addresses at which it listens
	world *World            // environment of the simulation
	host  *kernel.Host      // host whose cores it uses; nil if it takes no processor time
	cfg   forwarder.Config  // configuration of each start
	f     *forwarder.Driven // forwarder that runs in the current process
	lives int               // number of starts so far
}

// NewForwarder starts a forwarder on a host that listens at addr and at more. With a nil host its
// threads take no processor time. The listeners, log and dialer in cfg are not used.
func (w *World) NewForwarder(addr string, host *kernel.Host, cfg forwarder.Config, more ...string) *Forwarder {
	z := &Forwarder{Addr: addr, at: append([]string{addr}, more...), world: w, host: host, cfg: cfg}
	w.forwarders = append(w.forwarders, z)
	if w.NAT {
		z.home = netip.AddrFrom4([4]byte{10, 0, 0, byte(len(w.forwarders))})
		z.NAT = &NAT{world: w, ways: map[netip.AddrPort]nat.Way{}}
		z.cfg.NAT = z.NAT
	}
	z.Start()
	return z
}

// Kill ends the forwarder's process. The kernel removes its table with it.
func (z *Forwarder) Kill() {
	z.Proc.Kill()
	if z.NAT != nil {
		z.NAT.Lose(0, false)
	}
}

// Status returns the forwarder's status report.
func (z *Forwarder) Status() forwarder.Status { return z.f.Status() }

// forwarderSystem is the operating system of a forwarder: clock, timers and threads.
type forwarderSystem struct {
	*kernel.Kernel
	proc *kernel.Process // process in which the forwarder runs
}

// Now returns the virtual time as a date: 1e9 seconds after the epoch plus the time since the start
// of the world.
func (s forwarderSystem) Now() time.Time { return time.Unix(1e9, 0).Add(s.Kernel.Now()) }

// AfterFunc calls fn after d, unless the process has been killed by then.
func (s forwarderSystem) AfterFunc(d time.Duration, fn func()) clock.Timer {
	return s.After(d, func() {
		if !s.proc.Dead() {
			fn()
		}
	})
}

// Go starts a thread of the forwarder's process that calls fn.
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
	proc.Address = z.home
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

// Accept always returns an error, transport.ErrClosed. The forwarder never calls it in a
// simulation.
func (place) Accept() (transport.Link, error) { return nil, transport.ErrClosed }

// Addr returns the address at which the forwarder listens.
func (p place) Addr() string { return string(p) }

// Close does nothing and returns nil.
func (place) Close() error { return nil }

// forwarderLog passes the log of a forwarder to World.Say.
type forwarderLog struct{ z *Forwarder }

// Enabled reports whether the log is wanted, at any level: World.Say is set.
func (l forwarderLog) Enabled(zapcore.Level) bool { return l.z.world.Say != nil }

// With returns l unchanged: the log drops fields that all lines share.
func (l forwarderLog) With([]zapcore.Field) zapcore.Core { return l }

// Sync does nothing and returns nil.
func (forwarderLog) Sync() error { return nil }

// Check adds this log to the receivers c of entry e if the log is enabled, and returns c.
func (l forwarderLog) Check(e zapcore.Entry, c *zapcore.CheckedEntry) *zapcore.CheckedEntry {
	if l.Enabled(e.Level) {
		return c.AddCore(e, l)
	}
	return c
}

// Write formats entry e with its fields as a line and passes it to World.Say. The error is always
// nil.
func (l forwarderLog) Write(e zapcore.Entry, fields []zapcore.Field) error {
	m := zapcore.NewMapObjectEncoder()
	for _, f := range fields {
		f.AddTo(m)
	}
	l.z.world.Say("%s: %s %v", l.z.Proc.Name, e.Message, m.Fields)
	return nil
}
