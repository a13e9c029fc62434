package clikit

import (
	"fmt"
	"os"

	"github.com/urfave/cli/v2"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// LogFlag is --log; NewLogger takes its value.
var LogFlag = &cli.StringFlag{Name: "log", Value: "warn",
	Usage: "what to report on standard error: debug, info, warn, error", EnvVars: []string{"ZIPPER_LOG"}}

// NewLogger writes human-readable lines to standard error.
func NewLogger(level string) (*zap.Logger, error) {
	if level == "" {
		level = "warn"
	}
	l, err := zapcore.ParseLevel(level)
	if err != nil {
		return nil, Usage(fmt.Errorf("--log %s: want debug, info, warn or error", level))
	}
	cfg := zap.NewDevelopmentEncoderConfig()
	cfg.EncodeTime = zapcore.ISO8601TimeEncoder
	core := zapcore.NewCore(zapcore.NewConsoleEncoder(cfg), zapcore.Lock(os.Stderr), l)
	return zap.New(core), nil
}
