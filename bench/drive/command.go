package drive

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
)

// UsageError is a mistake on the command line of a program that measures.
type UsageError struct{ Err error }

// Usage returns a UsageError.
func Usage(err error) error { return UsageError{err} }

func (e UsageError) Error() string { return e.Err.Error() }

// Unwrap returns the error about the mistake.
func (e UsageError) Unwrap() error { return e.Err }

// Exit ends such a program: with status 0 if err is nil, 2 after a mistake on the command line or a
// request for help, else 1. It prints the error.
func Exit(name string, err error) {
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, name+":", err)
	}
	var wrong UsageError
	switch {
	case errors.Is(err, flag.ErrHelp), errors.As(err, &wrong):
		os.Exit(2)
	case err != nil:
		os.Exit(1)
	}
	os.Exit(0)
}

// Save writes a file in the directory.
func Save(dir, name string, form func(f *os.File) error) error {
	f, err := os.Create(filepath.Join(dir, name))
	if err != nil {
		return err
	}
	return errors.Join(form(f), f.Close())
}
