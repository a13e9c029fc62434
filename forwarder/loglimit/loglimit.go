// Package loglimit bounds the growth of a log by messages that strangers can cause.
package loglimit

import (
	"sync"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// Burst is the number of lines with one message that are written at once; then one a second is.
// With fewer, ordinary events of one moment are left out, such as the ends of several jobs.
const Burst = 10

// Limit returns a logger that leaves lines out. Messages are causes, so they must be constant; the
// next line with the same message has the number of lines left out before it. Debug lines are not
// bounded.
func Limit(log *zap.Logger) *zap.Logger {
	return log.WithOptions(zap.WrapCore(func(c zapcore.Core) zapcore.Core {
		return &core{c, &causes{of: map[string]*cause{}}}
	}))
}

type core struct {
	zapcore.Core
	causes *causes
}

// causes has the counts of lines by message. All loggers derived from one Limit share it. It is
// safe for concurrent use.
type causes struct {
	mu sync.Mutex
	of map[string]*cause
}

// cause counts the lines of the log with the same message.
type cause struct {
	full    time.Time // the time from which a whole burst of lines may be written again at once
	omitted int
}

// take decides whether a line with a message may be written to the log at the time now, and counts
// it. omitted is the number of lines with that message that were left out since the last one
// written.
func (c *causes) take(message string, now time.Time) (ok bool, omitted int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	m := c.of[message]
	if m == nil {
		m = &cause{full: now}
		c.of[message] = m
	}
	if m.full.Before(now) {
		m.full = now
	}
	if m.full.Sub(now) > (Burst-1)*time.Second {
		m.omitted++
		return false, 0
	}
	m.full = m.full.Add(time.Second)
	omitted, m.omitted = m.omitted, 0
	return true, omitted
}

func (c *core) With(fields []zapcore.Field) zapcore.Core {
	return &core{c.Core.With(fields), c.causes}
}

func (c *core) Check(e zapcore.Entry, checked *zapcore.CheckedEntry) *zapcore.CheckedEntry {
	if c.Enabled(e.Level) {
		return checked.AddCore(e, c)
	}
	return checked
}

func (c *core) Write(e zapcore.Entry, fields []zapcore.Field) error {
	if e.Level > zapcore.DebugLevel {
		ok, omitted := c.causes.take(e.Message, e.Time)
		if !ok {
			return nil
		}
		if omitted > 0 {
			fields = append(fields[:len(fields):len(fields)], zap.Int("left_out", omitted))
		}
	}
	return c.Core.Write(e, fields)
}
