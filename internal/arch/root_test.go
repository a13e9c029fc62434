package arch

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// foldersAtRoot bounds the number of folders that a newcomer sees first. Packages that only this
// module uses belong below internal/.
const foldersAtRoot = 18

// TestRoot counts the folders at the root that git tracks, without hidden ones.
func TestRoot(t *testing.T) {
	if _, err := os.Stat(root + "/.git"); err != nil {
		t.Skip("not a clone: the tracked files are not known")
	}
	out, err := exec.Command("git", "-C", root, "ls-files").Output()
	if err != nil {
		t.Fatal(err)
	}
	var dirs []string
	for path := range strings.Lines(string(out)) {
		if dir, _, ok := strings.Cut(path, "/"); ok && !strings.HasPrefix(dir, ".") {
			dirs = append(dirs, dir)
		}
	}
	slices.Sort(dirs)
	dirs = slices.Compact(dirs)
	if len(dirs) > foldersAtRoot {
		t.Errorf("%d folders at the root, more than %d: %s", len(dirs), foldersAtRoot, strings.Join(dirs, " "))
	}
}

// rootLines bounds the lines of package forwarder, without tests. A reader of a job's way through
// the forwarder has to know them all, beside the state machines.
const rootLines = 2500

// TestForwarderRoot counts the lines of package forwarder.
func TestForwarderRoot(t *testing.T) {
	files, err := filepath.Glob(root + "/forwarder/*.go")
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, f := range files {
		if strings.HasSuffix(f, "_test.go") {
			continue
		}
		b, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		n += strings.Count(string(b), "\n")
	}
	if n == 0 || n > rootLines {
		t.Errorf("%d lines, want 1 to %d: move what needs no connection, clock or lock to a package of its own", n, rootLines)
	}
}
