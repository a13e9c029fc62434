package clikit

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
)

// CheckWritable tells whether a file can be written, and leaves it as it is.
func CheckWritable(file string) error {
	_, err := os.Stat(file)
	isNew := errors.Is(err, os.ErrNotExist)
	f, err := os.OpenFile(file, os.O_WRONLY|os.O_CREATE, 0o644)
	if err != nil {
		return fmt.Errorf("cannot write the result: %w", err)
	}
	f.Close()
	if isNew {
		os.Remove(file)
	}
	return nil
}

// WriteFile makes a file of what write writes.
func WriteFile(name string, write func(io.Writer) error) error {
	f, err := os.Create(name)
	if err != nil {
		return err
	}
	return errors.Join(write(f), f.Close())
}

// WriteJSON writes a result as --json and --format json have it.
func WriteJSON(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(v)
}
