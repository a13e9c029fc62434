package wholefile

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

func text(s string) func(io.Writer) error {
	return func(w io.Writer) error { _, err := io.WriteString(w, s); return err }
}

func content(t *testing.T, name, want string) {
	t.Helper()
	if b, err := os.ReadFile(name); err != nil || string(b) != want {
		t.Errorf("%s has %q, %v; want %q", name, b, err, want)
	}
}

func TestWriteReplacesRegularFile(t *testing.T) {
	name := filepath.Join(t.TempDir(), "f")
	for _, s := range []string{"one", "two"} {
		if err := Write(name, 0o600, text(s)); err != nil {
			t.Fatal(err)
		}
		content(t, name, s)
	}
	// Write must not write to another name of the old file
	other := name + ".other"
	if err := os.Link(name, other); err != nil {
		t.Fatal(err)
	}
	if err := Write(name, 0o600, text("three")); err != nil {
		t.Fatal(err)
	}
	content(t, other, "two")
}

func TestFailedWriteLeavesFile(t *testing.T) {
	dir := t.TempDir()
	name, broken := filepath.Join(dir, "f"), errors.New("broken")
	if err := Write(name, 0o600, text("kept")); err != nil {
		t.Fatal(err)
	}
	if err := Write(name, 0o600, func(io.Writer) error { return broken }); !errors.Is(err, broken) {
		t.Errorf("got %v", err)
	}
	content(t, name, "kept")
	if left, _ := os.ReadDir(dir); len(left) != 1 {
		t.Errorf("left: %v", left)
	}
}

// TestWriteRefusesOthers checks that Write does not write through a link, and that a FIFO without a
// reader does not block it.
func TestWriteRefusesOthers(t *testing.T) {
	dir := t.TempDir()
	precious := filepath.Join(dir, "precious")
	if err := Write(precious, 0o600, text("kept")); err != nil {
		t.Fatal(err)
	}
	for what, put := range map[string]func(name string) error{
		"link":          func(name string) error { return os.Symlink(precious, name) },
		"dangling link": func(name string) error { return os.Symlink(filepath.Join(dir, "new"), name) },
		"fifo":          func(name string) error { return unix.Mkfifo(name, 0o600) },
		"directory":     func(name string) error { return os.Mkdir(name, 0o700) },
	} {
		name := filepath.Join(dir, what)
		if err := put(name); err != nil {
			t.Fatal(err)
		}
		if err := Write(name, 0o600, text("lost")); !errors.Is(err, ErrOther) {
			t.Errorf("%s: %v", what, err)
		}
	}
	content(t, precious, "kept")
	if _, err := os.Lstat(filepath.Join(dir, "new")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("made where a link leads: %v", err)
	}
}

// TestWritableAsksForTheDirectory checks that Writable returns the error that Write would, and
// leaves no file.
func TestWritableAsksForTheDirectory(t *testing.T) {
	dir := t.TempDir()
	name := filepath.Join(dir, "f")
	if err := Writable(name); err != nil {
		t.Error(err)
	}
	if left, _ := os.ReadDir(dir); len(left) != 0 {
		t.Errorf("left: %v", left)
	}
	if err := Writable(filepath.Join(dir, "missing", "f")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a directory that is missing: %v", err)
	}
	if err := os.WriteFile(name, []byte("kept"), 0o400); err != nil { // Write replaces a read-only file
		t.Fatal(err)
	}
	if err := Writable(name); err != nil {
		t.Error(err)
	}
	content(t, name, "kept")
	if os.Geteuid() == 0 {
		t.Skip("the rest is for users other than root, who may write to every directory")
	}
	if err := os.Chmod(dir, 0o500); err != nil {
		t.Fatal(err)
	}
	if err := Writable(name); !errors.Is(err, os.ErrPermission) {
		t.Errorf("a read-only directory: %v", err)
	}
}
