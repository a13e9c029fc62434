// Package wholefile writes files in directories that others may write to as well, such as /tmp: a
// link or a FIFO that somebody has put at a file's name is not written through.
package wholefile

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
)

// Write makes the file name of what write writes, or replaces the regular file of that name; an
// error leaves what was there. perm are the permissions before the umask. The file is written under
// a name that nobody can foresee, beside its own, and renamed when it is whole. Anything other than
// a regular file at name, such as a link or a device, is an error that matches ErrOther.
func Write(name string, perm os.FileMode, write func(io.Writer) error) error {
	f, err := create(name, perm)
	if err != nil {
		return err
	}
	if err := errors.Join(write(f), f.Close()); err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	if err := os.Rename(f.Name(), name); err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return nil
}

// Writable returns the error with which Write would end before it writes anything. It leaves the
// directory as it is.
func Writable(name string) error {
	f, err := create(name, 0o600)
	if err != nil {
		return err
	}
	return errors.Join(f.Close(), os.Remove(f.Name()))
}

// create opens a new file beside name, if Write may replace what is there.
func create(name string, perm os.FileMode) (*os.File, error) {
	if err := Check(name); err != nil {
		return nil, err
	}
	return os.OpenFile(name+".new-"+rand.Text(), os.O_WRONLY|os.O_CREATE|os.O_EXCL, perm)
}

// ErrOther is the reason why a name is refused that is not a regular file's.
var ErrOther = errors.New("there is something else than a regular file: remove it, or choose another name")

// Check returns an error that matches ErrOther if there is anything at name that Write does not
// replace.
func Check(name string) error {
	if st, err := os.Lstat(name); err == nil && !st.Mode().IsRegular() {
		return fmt.Errorf("%s: %w", name, ErrOther)
	}
	return nil
}
