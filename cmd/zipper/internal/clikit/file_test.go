package clikit

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/leidenzipper/zipper/internal/wholefile"
)

// TestWriteFileFollowsOwnLinksOnly checks that results go through a link of the user's own, and not
// through one of another user.
func TestWriteFileFollowsOwnLinksOnly(t *testing.T) {
	dir := t.TempDir()
	target, link := filepath.Join(dir, "target"), filepath.Join(dir, "link")
	if err := os.Symlink(target, link); err != nil {
		t.Fatal(err)
	}
	write := func(text string) error {
		if err := CheckWritable(link); err != nil {
			return err
		}
		return WriteFile(link, func(w io.Writer) error { _, err := io.WriteString(w, text); return err })
	}
	content := func(want string) {
		t.Helper()
		if b, err := os.ReadFile(target); err != nil || string(b) != want {
			t.Errorf("the target has %q, %v; want %q", b, err, want)
		}
	}
	for _, text := range []string{"first", "2nd"} {
		if err := write(text); err != nil {
			t.Fatal(err)
		}
		content(text)
	}
	if os.Geteuid() != 0 {
		t.Skip("the rest needs root, for a link that belongs to another user")
	}
	if err := os.Lchown(link, 65534, 65534); err != nil {
		t.Fatal(err)
	}
	if err := write("lost"); !errors.Is(err, wholefile.ErrOther) {
		t.Errorf("another user's link: %v, want that it is refused", err)
	}
	content("2nd")
}
