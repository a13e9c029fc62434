package launch

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/leidenzipper/zipper/internal/optional"
)

func newTestRundir(t *testing.T, base string) *rundir {
	t.Helper()
	r, err := newRundir(base, "private")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.remove)
	return r
}

// release makes a run directory look as if its launcher, and the janitor, had been killed.
func release(t *testing.T, r *rundir) {
	t.Helper()
	for _, l := range r.locks {
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
	}
	r.locks = nil
}

func TestStaleRunDirectoriesAreRemoved(t *testing.T) {
	base := t.TempDir()
	r, stale := newTestRundir(t, base), newTestRundir(t, base)
	if strings.Contains(r.dir+r.shared, "private") {
		t.Errorf("the job's id is in the names %s, %s", r.dir, r.shared)
	}
	// Processes that a launcher has started do not hold its lock.
	child := exec.Command("sleep", "1000")
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = child.Process.Kill()
		_ = child.Wait() // killed
	})
	release(t, stale)
	// One directory is of a launcher on another host, one of a launcher that is about to lock it.
	elsewhere := filepath.Join(base, fmt.Sprintf("zipper-%d-00c0ffee-1", os.Getuid()))
	unlocked := filepath.Join(base, mine()+"1")
	for _, d := range []string{elsewhere, unlocked} {
		if err := os.Mkdir(d, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(elsewhere, lockName), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	newTestRundir(t, base)
	for _, dir := range stale.dirs() {
		if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("the directory %s of a dead launcher is still there: %v", dir, err)
		}
	}
	for _, dir := range append(r.dirs(), elsewhere, unlocked) {
		if _, err := os.Stat(dir); err != nil {
			t.Errorf("the directory of a living launcher, or of one on another host, is gone: %v", err)
		}
	}
}

func TestRunDirectoryCannotBeMade(t *testing.T) {
	if _, err := newRundir(filepath.Join(t.TempDir(), "nowhere"), "j"); err == nil ||
		!strings.Contains(err.Error(), "--run-dir") {
		t.Errorf("got %v", err)
	}
}

// TestStaleLinksAreKept checks that a launcher neither follows a link at a run directory's name nor
// waits for a lock that is not a file.
func TestStaleLinksAreKept(t *testing.T) {
	base := t.TempDir()
	other := newTestRundir(t, filepath.Join(t.TempDir()))
	release(t, other)
	if err := os.Symlink(other.dir, filepath.Join(base, mine()+"1")); err != nil {
		t.Fatal(err)
	}
	fifo := filepath.Join(base, mine()+"2")
	if err := os.Mkdir(fifo, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := exec.Command("mkfifo", filepath.Join(fifo, lockName)).Run(); err != nil {
		t.Fatal(err)
	}
	removeStale(base, mine())
	if _, err := os.Stat(filepath.Join(other.dir, "job")); err != nil {
		t.Error(err)
	}
}

// TestRunDirectoriesAcrossPIDNamespaces checks that a launcher in a container, which does not see
// the processes of others, leaves their directories alone.
func TestRunDirectoriesAcrossPIDNamespaces(t *testing.T) {
	const variable = "ZIPPER_TEST_RUNDIR_BASE"
	if base := os.Getenv(variable); base != "" {
		newTestRundir(t, base)
		return
	}
	words := optional.Unshare(t, "--map-current-user", "--pid", "--fork", "--mount-proc")
	base := t.TempDir()
	r := newTestRundir(t, base)
	cmd := exec.Command(words[0], append(words[1:], os.Args[0], "-test.run", "^"+t.Name()+"$")...)
	cmd.Env = append(os.Environ(), variable+"="+base)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, dir := range r.dirs() {
		if _, err := os.Stat(filepath.Join(dir, "job")); err != nil {
			t.Errorf("a launcher in another PID namespace has removed a living one's directory: %v", err)
		}
	}
}
