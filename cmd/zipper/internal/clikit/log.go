package clikit

import (
	"fmt"
	"os"

	"github.com/urfave/cli/v2"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// LogFlag is the flag --log; NewLogger takes its value.
var LogFlag = &cli.StringFlag{Name: "log", Value: "warn",
	Usage: "level of the messages on standard error: debug, info, warn, error", EnvVars: []string{"ZIPPER_LOG"}}

// NewLogger returns a logger that writes readable lines to standard error.
func NewLogger(level string) (*zap.Logger, error) {
	log, _, err := NewLevelled(level)
	return log, err
}

// NewLevelled returns such a logger and its level, which can be changed.
func NewLevelled(level string) (*zap.Logger, zap.AtomicLevel, error) {
	l, err := ParseLogLevel(level)
	if err != nil {
		return nil, zap.AtomicLevel{}, err
	}
	atomic := zap.NewAtomicLevelAt(l)
	cfg := zap.NewDevelopmentEncoderConfig()
	cfg.EncodeTime = zapcore.ISO8601TimeEncoder
	core := zapcore.NewCore(zapcore.NewConsoleEncoder(cfg), zapcore.Lock(os.Stderr), atomic)
	return zap.New(core), atomic, nil
}

// ParseLogLevel reads --log.
func ParseLogLevel(level string) (zapcore.Level, error) {
	if level == "" {
		level = "warn"
	}
	l, err := zapcore.ParseLevel(level)
	if err != nil {
		return l, Usage(fmt.Errorf("--log %s: want debug, info, warn or error", level))
	}
	return l, nil
}
