// Command zipper joins clusters that share no network into one MPI world. Each command has a file of its own;
// what they do is in the packages.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"regexp"
	"runtime/debug"
	"syscall"

	"github.com/urfave/cli/v2"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"golang.org/x/sys/unix"

	"github.com/leidenzipper/zipper/cmd/zipper/internal/modelcmd"
	"github.com/leidenzipper/zipper/jobenv"
	"github.com/leidenzipper/zipper/launch"
	"github.com/leidenzipper/zipper/launch/native"
	"github.com/leidenzipper/zipper/wire"
)

// Exit statuses of our own; zipper run and join otherwise end with the program's.
const (
	exitFailure = 1
	exitUsage   = 2
)

func main() {
	err := newApp().Run(os.Args)
	var status statusError
	var sig errInterrupted
	switch {
	case err == nil:
	case errors.As(err, &status):
		if status.err != nil {
			fmt.Fprintln(os.Stderr, "zipper:", status.err)
		}
		os.Exit(status.code)
	case errors.As(err, &sig):
		fmt.Fprintln(os.Stderr, "zipper:", err)
		os.Exit(128 + int(sig.sig))
	default:
		fmt.Fprintln(os.Stderr, "zipper:", err)
		os.Exit(exitFailure)
	}
}

// newApp is all commands.
func newApp() *cli.App {
	app := &cli.App{
		Name:  "zipper",
		Usage: "one MPI world over clusters that share no network",
		Commands: []*cli.Command{
			runCommand(), joinCommand(), execCommand(), forwarderCommand(), benchCommand(), calibrateCommand(), statusCommand(), doctorCommand(),
			wrapperCommand("cc", native.LangC), wrapperCommand("cxx", native.LangCXX), wrapperCommand("fc", native.LangFortran),
		},
		Version:                   version(),
		UseShortOptionHandling:    true,
		DisableSliceFlagSeparator: true,                         // commas are part of the values
		ExitErrHandler:            func(*cli.Context, error) {}, // below, once
		OnUsageError:              usageError,
		CommandNotFound: func(c *cli.Context, name string) {
			fmt.Fprintf(os.Stderr, "zipper: there is no command %q; zipper help lists them\n", name)
			os.Exit(exitUsage)
		},
	}
	app.Commands = append(app.Commands, modelcmd.Commands(usage)...)
	shortUsageErrors(app.Commands)
	return app
}

// release is the version of the whole, which scripts/build gives to pkg-config as well.
const release = "0.1.0"

// version is what must be the same everywhere, and which source it was built from.
func version() string {
	built := release
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, s := range info.Settings {
			switch {
			case s.Key == "vcs.revision":
				built += " " + s.Value
			case s.Key == "vcs.modified" && s.Value == "true":
				built += ", changed"
			}
		}
	}
	return fmt.Sprintf("%s (protocol %d)", built, wire.Version)
}

// statusError ends the command with an exit status, and a message if err is not nil.
type statusError struct {
	code int
	err  error
}

func (e statusError) Error() string { return fmt.Sprint(e.err) }

func (e statusError) Unwrap() error { return e.err }

// usage marks an error as the user's: wrong flags or arguments.
func usage(err error) error { return statusError{exitUsage, err} }

// bareNumber is how the flag package puts a duration without a unit; numbers in other flags do parse.
var bareNumber = regexp.MustCompile(`^invalid value "([0-9]+)" for flag -([a-z-]+): parse error$`)

func usageError(c *cli.Context, err error, _ bool) error {
	if m := bareNumber.FindStringSubmatch(err.Error()); m != nil {
		err = fmt.Errorf("--%s %s: want a duration with its unit, such as %[2]ss", m[2], m[1])
	}
	return usage(fmt.Errorf("%w (%s --help shows the form)", err, c.Command.HelpName))
}

// shortUsageErrors makes all commands, and theirs, answer wrong flags with one line.
func shortUsageErrors(commands []*cli.Command) {
	for _, c := range commands {
		c.OnUsageError = usageError
		shortUsageErrors(c.Subcommands)
	}
}

// readSecret reads the file of --secret-file.
func readSecret(name string) (string, error) {
	secret, err := jobenv.ReadSecret(name)
	if err != nil {
		return "", fmt.Errorf("--secret-file: %w", err)
	}
	return secret, nil
}

// newLogger writes human-readable lines to standard error.
func newLogger(level string) (*zap.Logger, error) {
	if level == "" {
		level = "warn"
	}
	l, err := zapcore.ParseLevel(level)
	if err != nil {
		return nil, usage(fmt.Errorf("--log %s: want debug, info, warn or error", level))
	}
	cfg := zap.NewDevelopmentEncoderConfig()
	cfg.EncodeTime = zapcore.ISO8601TimeEncoder
	core := zapcore.NewCore(zapcore.NewConsoleEncoder(cfg), zapcore.Lock(os.Stderr), l)
	return zap.New(core), nil
}

// errInterrupted is the cause of a context that a signal ended.
type errInterrupted struct{ sig syscall.Signal }

func (e errInterrupted) Error() string { return "ended by " + launch.SignalName(e.sig) }

// untilSignal gives a context that the usual signals to end cancel. A second signal changes nothing: what is
// under way is bounded in time.
func untilSignal(parent context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(parent)
	ch := make(chan os.Signal, 1)
	// SIGPIPE: nobody reads our output any more; without this the process would just end, and leave its children.
	signal.Notify(ch, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGPIPE)
	go func() {
		for {
			select {
			case s := <-ch:
				if s == syscall.SIGPIPE && !unread() {
					continue // another pipe: a program that does not read its input to the end
				}
				cancel(errInterrupted{s.(syscall.Signal)})
			case <-ctx.Done():
			}
			return
		}
	}()
	return ctx, func() { signal.Stop(ch); cancel(nil) }
}

// unread reports whether standard output or standard error has lost its reader.
func unread() bool {
	fds := []unix.PollFd{{Fd: 1}, {Fd: 2}} // errors are told unasked
	n, err := unix.Poll(fds, 0)
	return err == nil && n > 0 && (fds[0].Revents|fds[1].Revents)&(unix.POLLERR|unix.POLLHUP) != 0
}

var logFlag = &cli.StringFlag{Name: "log", Value: "warn", Usage: "what to report on standard error: debug, info, warn, error", EnvVars: []string{"ZIPPER_LOG"}}
