package loglimit

import (
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"
)

type clock struct{ now time.Time }

func (c *clock) Now() time.Time                       { return c.now }
func (c *clock) NewTicker(time.Duration) *time.Ticker { panic("not used") }

// TestLimit checks that after a burst one line a second of each message is written, with the number
// of lines left out.
func TestLimit(t *testing.T) {
	seen, lines := observer.New(zapcore.DebugLevel)
	at := &clock{time.Unix(1000, 0)}
	log := Limit(zap.New(seen, zap.WithClock(at))).With(zap.String("who", "x"))
	for range 1000 {
		log.Warn("bad")
	}
	log.Error("another")
	for range 20 {
		log.Debug("asked for")
	}
	if n := lines.FilterMessage("bad").Len(); n != Burst {
		t.Errorf("%d lines at once", n)
	}
	if lines.FilterMessage("another").Len() != 1 || lines.FilterMessage("asked for").Len() != 20 {
		t.Error("others are left out")
	}
	lines.TakeAll()
	at.now = at.now.Add(time.Second)
	log.Warn("bad")
	log.Warn("bad")
	l := lines.TakeAll()
	if len(l) != 1 || l[0].ContextMap()["left_out"] != int64(1000-Burst) || l[0].ContextMap()["who"] != "x" {
		t.Errorf("a second later: %+v", l)
	}
}
