package clikit

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/leidenzipper/zipper/internal/wholefile"
)

// CheckWritable tells whether a file can be written, and leaves it as it is.
func CheckWritable(file string) error {
	if err := wholefile.Check(file); err != nil {
		return fmt.Errorf("cannot write the result: %w", err)
	}
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

// WriteFile makes a file of what write writes, as wholefile.Write does: no link is followed at a
// name that others can foresee.
func WriteFile(name string, write func(io.Writer) error) error {
	return wholefile.Write(name, 0o666, write)
}

// WriteBytes makes a file of its content, as WriteFile does.
func WriteBytes(name string, b []byte) error {
	return WriteFile(name, func(w io.Writer) error { _, err := w.Write(b); return err })
}

// WriteJSON writes a result as --json and --format json have it.
func WriteJSON(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(v)
}
