package forwarder

import (
	"fmt"
	"net/netip"
	"slices"
	"time"

	"go.uber.org/zap/zapcore"

	"github.com/leidenzipper/zipper/forwarder/clock"
	"github.com/leidenzipper/zipper/forwarder/nat"
	"github.com/leidenzipper/zipper/internal/transport"
	"github.com/leidenzipper/zipper/internal/transport/memnet"
	"github.com/leidenzipper/zipper/internal/wire"
)

// This file has the environment of forwarders in scripts: links, a kernel, a clock and a log.

// describe returns the text of a frame.
func describe(h wire.Header, body []byte) string {
	switch h.Type {
	case wire.TypeEager, wire.TypeData:
		return fmt.Sprintf("%v %d>%d size=%d", h.Type, h.Src, h.Dst, h.Payload())
	case wire.TypeLayout:
		l, err := wire.ParseLayout(body, wire.Version)
		if err != nil {
			return err.Error()
		}
		text := fmt.Sprintf("Layout rank=%d", l.Rank)
		for _, d := range l.Doors {
			text += fmt.Sprintf(" door(rank=%d for=%d at=%s)", d.Rank, d.Network, d.Address)
		}
		return text
	case wire.TypeRefuse:
		r, _ := wire.ParseRefuse(body)
		return fmt.Sprintf("Refuse (%v) %s", r.Code, r.Reason)
	case wire.TypeNotice:
		n, _ := wire.ParseNotice(body)
		return "Notice " + n.Text
	case wire.TypeAbort:
		a, _ := wire.ParseAbort(body)
		who := "nobody"
		if a.Rank != wire.Nobody {
			who = fmt.Sprint(a.Rank)
		}
		return fmt.Sprintf("Abort code=%d rank=%s %s", a.Code, who, a.Reason)
	case wire.TypeWay:
		w, _ := wire.ParseWay(body)
		return fmt.Sprintf("Way rank=%d at=%s", w.Rank, w.Address)
	case wire.TypeLost:
		l, _ := wire.ParseLost(body)
		return fmt.Sprintf("Lost cluster=%d epoch=%d %s", l.Cluster, l.Epoch, l.Reason)
	case wire.TypeRailState:
		r, _ := wire.ParseRailState(body)
		state := map[bool]string{true: "up=true"}[r.Up]
		switch {
		case r.Departed:
			state = "gone"
		case r.Cut:
			state = "cut"
		case !r.Up:
			state = "up=false"
		}
		return fmt.Sprintf("RailState rank=%d %s %s", r.Rank, state, r.Reason)
	}
	return h.Type.String()
}

// silent is a listener without links: links are given to the forwarder.
type silent struct{ addr string }

func (silent) Accept() (transport.Link, error) { return nil, transport.ErrClosed }
func (l silent) Addr() string                  { return l.addr }
func (silent) Close() error                    { return nil }

// named is a link on an IP network, with the name of its other end.
type named struct {
	*memnet.Link
	name      string
	roundTrip time.Duration // the round trip; 0: not known
}

func (n named) Remote() string { return n.name }

func (n named) Path() (p transport.Path, known bool) {
	return transport.Path{RoundTrip: n.roundTrip}, n.roundTrip > 0
}

func (n named) UseLongPath() {}

func (n named) Home() (here, there netip.Addr) {
	return netip.MustParseAddr("10.0.0.254"), netip.MustParseAddr("10.0.0.1")
}

// scriptNAT is a kernel that opens all ways, or none.
type scriptNAT struct{ s *script }

func (n scriptNAT) Forwards(netip.Addr) bool { return true }

func (n scriptNAT) OpenWays(ways []nat.Way) (at []netip.AddrPort, err error) {
	n.s.printf("  kernel: open %v", ways)
	if n.s.broken != nil {
		return nil, n.s.broken
	}
	for _, w := range ways {
		n.s.doors++
		at = append(at, netip.AddrPortFrom(w.At, 7000+n.s.doors))
	}
	return at, nil
}

func (n scriptNAT) CloseWays(at []netip.AddrPort) error {
	n.s.printf("  kernel: close %v", at)
	return nil
}

// steppedClock is a clock that stands still except for advance.
type steppedClock struct {
	now    time.Time
	timers []*steppedTimer
}

type steppedTimer struct {
	c  *steppedClock
	at time.Time // zero: stopped
	fn func()
}

func (c *steppedClock) Now() time.Time { return c.now }

// NewTicker completes zapcore.Clock, so that the limits of the log follow the script's time. zap
// calls it only for buffered logs, and scripts have none.
func (c *steppedClock) NewTicker(time.Duration) *time.Ticker { panic("nothing ticks in a script") }

func (c *steppedClock) AfterFunc(d time.Duration, fn func()) clock.Timer {
	t := &steppedTimer{c, c.now.Add(d), fn}
	c.timers = append(c.timers, t)
	return t
}

func (t *steppedTimer) Stop() bool {
	was := !t.at.IsZero()
	t.at = time.Time{}
	return was
}

func (t *steppedTimer) Reset(d time.Duration) bool {
	was := t.Stop()
	t.at = t.c.now.Add(d)
	return was
}

func (c *steppedClock) advance(d time.Duration) {
	c.now = c.now.Add(d)
	for _, t := range slices.Clone(c.timers) {
		if !t.at.IsZero() && !t.at.After(c.now) {
			t.at = time.Time{}
			t.fn()
		}
	}
}

// scriptLog prints the log of a forwarder.
type scriptLog struct {
	s   *script
	zip string
}

func (l scriptLog) Enabled(zapcore.Level) bool        { return true }
func (l scriptLog) With([]zapcore.Field) zapcore.Core { return l }
func (l scriptLog) Sync() error                       { return nil }

func (l scriptLog) Check(e zapcore.Entry, c *zapcore.CheckedEntry) *zapcore.CheckedEntry {
	return c.AddCore(e, l)
}

func (l scriptLog) Write(e zapcore.Entry, fields []zapcore.Field) error {
	m := zapcore.NewMapObjectEncoder()
	for _, f := range fields {
		f.AddTo(m)
	}
	who := m.Fields["job"]
	if p, ok := m.Fields["peer"].(map[string]any); ok {
		who = p["link"]
	}
	switch e.Level {
	case zapcore.DebugLevel:
		if m.Fields["was"] != nil {
			l.s.printf("  %s: %s %v: %v → %v", l.zip, e.Message, who, m.Fields["was"], m.Fields["is"])
		}
	default:
		l.s.printf("  %s: %v: %s", l.zip, who, e.Message)
	}
	return nil
}
