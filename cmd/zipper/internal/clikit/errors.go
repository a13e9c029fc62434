// Package clikit has the common parts of several commands of zipper: exit statuses, signals, flags,
// results.
package clikit

import (
	"context"
	"errors"
	"fmt"
	"os"
	"regexp"

	"github.com/urfave/cli/v2"
)

// Exit statuses of zipper itself; apart from these zipper run and join end with the program's
// status.
const (
	ExitFailure = 1
	ExitUsage   = 2
)

// StatusError ends the command with an exit status, and a message if err is not nil.
type StatusError struct {
	Code int
	Err  error
}

func (e StatusError) Error() string { return fmt.Sprint(e.Err) }

func (e StatusError) Unwrap() error { return e.Err }

// Usage marks an error as the user's: wrong flags or arguments.
func Usage(err error) error { return StatusError{Code: ExitUsage, Err: err} }

// IsUsage tells whether an error is the user's.
func IsUsage(err error) bool {
	var status StatusError
	return errors.As(err, &status) && status.Code == ExitUsage
}

// bareNumber matches the flag package's error for a duration without a unit. Numbers in other flags
// are valid.
var bareNumber = regexp.MustCompile(`^invalid value "([0-9]+)" for flag -([a-z-]+): parse error$`)

// usageError returns the error for a flag that cannot be parsed.
func usageError(c *cli.Context, err error, _ bool) error {
	if m := bareNumber.FindStringSubmatch(err.Error()); m != nil {
		err = fmt.Errorf("--%s %s: want a duration with its unit, such as %[2]ss", m[2], m[1])
	}
	return Usage(fmt.Errorf("%w (%s --help shows the form)", err, c.Command.HelpName))
}

// ShortUsageErrors makes an app and all its commands answer wrong flags with one line.
func ShortUsageErrors(app *cli.App) {
	app.OnUsageError = usageError
	shortUsageErrors(app.Commands)
}

func shortUsageErrors(commands []*cli.Command) {
	for _, c := range commands {
		c.OnUsageError = usageError
		shortUsageErrors(c.Subcommands)
	}
}

// WithCause returns err, or the cause of the end of ctx if that is the reason for err.
func WithCause(ctx context.Context, err error) error {
	if err != nil && ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

// Report prints a command's error on standard error, and returns the exit status for it.
func Report(err error) int {
	var status StatusError
	var sig Interrupted
	code := ExitFailure
	switch {
	case err == nil:
		return 0
	case errors.As(err, &status):
		code, err = status.Code, status.Err
	case errors.As(err, &sig):
		code = sig.Status()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "zipper:", err)
	}
	return code
}
