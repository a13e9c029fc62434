package english

import (
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
)

const root = "../.."

// exceptions are places that break a rule for a reason. Each is used, or the test fails.
var exceptions = []struct {
	file string // the file, or a folder with all files below it
	text string // words of the finding; empty: all findings
	why  string // the reason
}{
	{"internal/english", "", "quotes the words that the rules exclude"},
}

// TestTree checks that the tree has no finding without an exception.
func TestTree(t *testing.T) {
	found := findings(t)
	if len(found) == 0 {
		t.Fatal("no findings at all: does the test read the tree?")
	}
	except(t, found)
	for _, file := range slices.Sorted(maps.Keys(found)) {
		for _, f := range slices.SortedFunc(slices.Values(found[file]), func(a, b Finding) int { return a.Line - b.Line }) {
			t.Errorf("%s:%d: %s: %s", file, f.Line, f.Rule, f.Text)
		}
	}
}

// except removes the findings that have an exception.
func except(t *testing.T, found map[string][]Finding) {
	for _, e := range exceptions {
		used := false
		for file, all := range found {
			if file == e.file || strings.HasPrefix(file, e.file+"/") {
				found[file] = slices.DeleteFunc(all, func(f Finding) bool {
					is := strings.Contains(f.Text, e.text)
					used = used || is
					return is
				})
			}
		}
		if !used {
			t.Errorf("the exception for %q in %s is not used", e.text, e.file)
		}
	}
}

// findings returns the findings of each file of the tree, whose name is relative to the root.
func findings(t *testing.T) map[string][]Finding {
	t.Helper()
	var (
		all  = map[string][]Finding{}
		lock sync.Mutex
		wait sync.WaitGroup
		work = make(chan string)
	)
	for range runtime.GOMAXPROCS(0) {
		wait.Go(func() {
			for name := range work {
				src, err := os.ReadFile(filepath.Join(root, name))
				if err != nil {
					t.Error(err)
					continue
				}
				found, err := Check(name, src)
				if err != nil {
					t.Error(err)
				}
				if len(found) > 0 {
					lock.Lock()
					all[name] = found
					lock.Unlock()
				}
			}
		})
	}
	err := fs.WalkDir(os.DirFS(root), ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case !d.IsDir():
			if d.Type().IsRegular() {
				work <- name
			}
		case name == "bin", name == "lib", d.Name() == ".git", d.Name() == "build", d.Name() == "testdata":
			return fs.SkipDir // made by builds and tests
		}
		return nil
	})
	close(work)
	wait.Wait()
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// since is when TestSubjects came to be. Older commits are published and stay as they are.
const since = "2026-11-27T16:45:00Z"

// TestSubjects checks the subjects of the commits since then, or since the last tag if that is
// later.
func TestSubjects(t *testing.T) {
	// The test reads this file, so that Go's cache of results knows when there are new commits.
	if logs, err := git("rev-parse", "--git-path", "logs/HEAD"); err == nil {
		_, _ = os.ReadFile(strings.TrimSpace(logs)) // there is none in a fresh clone
	}
	args := []string{"log", "--no-merges", "--since=" + since, "--format=%h %s", "HEAD"}
	if tag, err := git("describe", "--tags", "--abbrev=0"); err == nil {
		args = append(args, "^"+strings.TrimSpace(tag))
	}
	subjects, err := git(args...)
	if err != nil {
		t.Skip("no history to check: ", err)
	}
	for line := range strings.Lines(subjects) {
		hash, subject, _ := strings.Cut(strings.TrimSpace(line), " ")
		if wrong := Subject(subject); wrong != "" {
			t.Errorf("%s: the subject %s: %s", hash, wrong, subject)
		}
	}
}

func git(args ...string) (string, error) {
	cmd := exec.Command("git", args...)
	cmd.Dir = root
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("git %s: %w", args[0], err)
	}
	return string(out), nil
}
