// Package wholefile writes files in directories that others may write to as well, such as /tmp. It
// does not write through a link or a FIFO that another user has put at a file's name.
package wholefile

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
)

// Write creates the file name with the bytes that write writes, or replaces the regular file of
// that name. After an error the old file is unchanged. perm are the permissions before the umask.
// The file is written under an unpredictable name beside its own, and renamed when it is complete.
// Anything other than a regular file at name, such as a link or a device, is an error that matches
// ErrOther.
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

// Writable returns the error with which Write would end before it writes anything. It does not
// change the directory.
func Writable(name string) error {
	f, err := create(name, 0o600)
	if err != nil {
		return err
	}
	return errors.Join(f.Close(), os.Remove(f.Name()))
}

// create opens a new file beside name, if Write may replace the file at name.
func create(name string, perm os.FileMode) (*os.File, error) {
	if err := Check(name); err != nil {
		return nil, err
	}
	return os.OpenFile(name+".new-"+rand.Text(), os.O_WRONLY|os.O_CREATE|os.O_EXCL, perm)
}

// ErrOther means that a name does not belong to a regular file.
var ErrOther = errors.New("not a regular file: remove it, or choose another name")

// Check returns an error that matches ErrOther if there is anything at name that Write does not
// replace.
func Check(name string) error {
	if st, err := os.Lstat(name); err == nil && !st.Mode().IsRegular() {
		return fmt.Errorf("%s: %w", name, ErrOther)
	}
	return nil
}
