package simulation

import (
	"context"
	"fmt"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/leidenzipper/zipper/forwarder"
	"github.com/leidenzipper/zipper/simulation/kernel"
	"github.com/leidenzipper/zipper/transport"
)

// zip is a forwarder, which may be started again.
type zip struct {
	job   *job
	addr  string
	proc  *kernel.Process
	f     *forwarder.Driven
	lives int
}

// zipSystem is its operating system.
type zipSystem struct {
	*kernel.Kernel
	proc *kernel.Process
}

// Now is the virtual time.
func (s zipSystem) Now() time.Time { return time.Unix(1e9, 0).Add(s.Kernel.Now()) }

// AfterFunc calls when it is time, unless the process has been killed.
func (s zipSystem) AfterFunc(d time.Duration, fn func()) forwarder.Timer {
	return s.After(d, func() {
		if !s.proc.Dead() {
			fn()
		}
	})
}

// Go is a thread.
func (s zipSystem) Go(fn func()) { s.proc.Go(fn) }

// start starts a forwarder, or the next one at its place.
func (z *zip) start() {
	if z.proc != nil && !z.proc.Dead() {
		return
	}
	z.lives++
	z.proc = z.job.k.Process(fmt.Sprintf("%s.%d", z.addr, z.lives))
	proc := z.proc
	f, err := forwarder.NewDriven(forwarder.Config{Listeners: []transport.Listener{place(z.addr)}, ReadBuffer: 16 << 10,
		Log:  zap.New(zipLog{z: z}),
		Dial: func(ctx context.Context, addr string) (transport.Link, error) { return z.job.dial(ctx, proc, addr) },
		Jobs: nil, PingInterval: ping, PeerTimeout: silence, Unreachable: silence, Linger: time.Second,
		JoinTimeout: 5 * time.Second,
		Memory:      256 << 20}, zipSystem{z.job.k, proc})
	if err != nil {
		panic(err)
	}
	z.f = f
	proc.Listen(z.addr, func(e *kernel.End) { f.Take(e) })
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

// zipLog keeps what a forwarder logs.
type zipLog struct{ z *zip }

// Enabled says yes if anybody reads it.
func (l zipLog) Enabled(zapcore.Level) bool { return l.z.job.history != nil }

// With is for fields that all lines have.
func (l zipLog) With([]zapcore.Field) zapcore.Core { return l }

// Sync has nothing to do.
func (zipLog) Sync() error { return nil }

// Check takes all.
func (l zipLog) Check(e zapcore.Entry, c *zapcore.CheckedEntry) *zapcore.CheckedEntry {
	if l.Enabled(e.Level) {
		return c.AddCore(e, l)
	}
	return c
}

// Write tells.
func (l zipLog) Write(e zapcore.Entry, fields []zapcore.Field) error {
	m := zapcore.NewMapObjectEncoder()
	for _, f := range fields {
		f.AddTo(m)
	}
	l.z.job.say("%s: %s %v", l.z.proc.Name, e.Message, m.Fields)
	return nil
}
