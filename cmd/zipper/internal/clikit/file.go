package clikit

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"

	"github.com/leidenzipper/zipper/internal/wholefile"
)

// CheckWritable tells whether WriteFile can write a file, and leaves the file as it is.
func CheckWritable(file string) error {
	check := wholefile.Writable
	if through(file) {
		check = opens
	}
	if err := check(file); err != nil {
		return fmt.Errorf("cannot write the result: %w", err)
	}
	return nil
}

// opens tells whether the file at a name, such as a link of the user's, can be opened for writing.
// A link to a missing file leads to an empty file afterwards.
func opens(name string) error {
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE, 0o666)
	if err != nil {
		return err
	}
	return f.Close()
}

// WriteFile makes a file of the output of write, as wholefile.Write does. A link, a device or a
// FIFO at that name, such as /dev/stdout, is written through if it belongs to the user or to root,
// because no other user has put it there.
func WriteFile(name string, write func(io.Writer) error) error {
	if !through(name) {
		return wholefile.Write(name, 0o666, write)
	}
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o666)
	if err != nil {
		return err
	}
	return errors.Join(write(f), f.Close())
}

// through tells whether there is a link, a device or a FIFO at a name that belongs to the user or
// to root.
func through(name string) bool {
	info, err := os.Lstat(name)
	if err != nil || info.Mode().IsRegular() || info.IsDir() {
		return false
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	return ok && (st.Uid == 0 || int(st.Uid) == os.Geteuid())
}

// WriteBytes makes a file of its content, as WriteFile does.
func WriteBytes(name string, b []byte) error {
	return WriteFile(name, func(w io.Writer) error { _, err := w.Write(b); return err })
}

// WriteJSON writes a result in the form of --json and --format json.
func WriteJSON(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(v)
}
