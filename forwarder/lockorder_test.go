package forwarder

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// lockLevels are the mutexes of the forwarder, in the order in which a goroutine may take them. A
// file that declares several has several lines, in the order of its text.
var lockLevels = []struct{ file, lock string }{
	{"runner.go", "a job's"},
	{"forwarder.go", "Forwarder.mu"},
	{"relay/sealed.go", "that of a sealed connection"},
	{"relay/output.go", "that of a connection's output"},
	{"relay/pipes.go", "that of the spare pipes"},
	{"loop/loop.go", "a loop's"},
	{"loop/loop.go", "that of a watched source"},
	{"budget/budget.go", "that of a connection's account"},
}

// inversions are faults of which TestLockOrder has to find each.
var inversions = []struct{ file, old, new string }{
	{"enter.go", "r, _ := f.jobs.Find(j)\n", "r, _ := f.jobs.Find(j)\nif INVERSION && r != nil {\nr.locked(func() {})\n}\n"},
	{"relay/count.go", "c.counted = now\n", "c.counted = now\nif INVERSION {\nc.out.mu.Lock()\n_ = c.ctl.Route()\nc.out.mu.Unlock()\n}\n"},
}

// TestLockOrder runs tests of the forwarder with mutexes that check the order of the package
// comment, built by an overlay, so that the product has plain ones. It checks that the inversions
// are found, too. The short form runs the scripts and tests with threads, the long form
// (ZIPPER_LONG=1) all tests but that of allocations, which checked locks make.
func TestLockOrder(t *testing.T) {
	if os.Getenv(inversionVariable) != "" {
		t.Skip("this is the test that it has started")
	}
	for _, pattern := range []string{"*.go", "relay/*.go", "loop/*.go", "budget/*.go"} {
		files, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			known := slices.ContainsFunc(lockLevels, func(l struct{ file, lock string }) bool { return l.file == file })
			b, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if !known && !strings.HasSuffix(file, "_test.go") && strings.Contains(string(b), "sync.Mutex") {
				t.Errorf("%s has a mutex that is not in lockLevels", file)
			}
		}
	}
	program := withCheckedLocks(t)
	tests := "^Test(Scripts|Join|Bridge|Hops|Rails|Drain|Strangers)"
	if os.Getenv("ZIPPER_LONG") != "" {
		tests = "."
	}
	for planted := range len(inversions) + 1 {
		cmd := exec.CommandContext(t.Context(), program, "-test.run", tests, "-test.skip", "^TestNoAllocation",
			"-test.timeout", "5m")
		cmd.Env = append(os.Environ(), fmt.Sprintf("%s=%d", inversionVariable, planted))
		out, err := cmd.CombinedOutput()
		found := regexp.MustCompile(`lock order: .*`).FindString(string(out))
		switch {
		case planted == 0 && err != nil:
			t.Errorf("%v\n%.4000s\nlevels are those of lockLevels", err, out)
		case planted > 0 && found == "":
			t.Errorf("the inversion in %s is not found: %v", inversions[planted-1].file, err)
		case planted > 0:
			t.Logf("%s: %s", inversions[planted-1].file, found)
		}
	}
}

// inversionVariable says which inversion is on; 0: none is.
const inversionVariable = "ZIPPER_INVERSION"

// withCheckedLocks builds the tests of this package with checked locks and with the inversions.
func withCheckedLocks(t *testing.T) string {
	t.Helper()
	root, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	texts := map[string]string{}
	replace := func(file, before, after string) {
		if texts[file] == "" {
			b, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			texts[file] = string(b) + "\nvar _ sync.Locker\n"
		}
		if !strings.Contains(texts[file], before) {
			t.Fatalf("%s has no %q", file, before)
		}
		texts[file] = strings.Replace(texts[file], before, after, 1)
	}
	for level, l := range lockLevels {
		replace(l.file, "sync.Mutex", fmt.Sprintf("lockorder.Mutex[[%d]byte]", level))
	}
	for i, v := range inversions {
		replace(v.file, v.old, strings.ReplaceAll(v.new, "INVERSION", fmt.Sprintf("lockorder.Planted == %d", i+1)))
	}
	dir := t.TempDir()
	overlay := map[string]string{filepath.Join(root, "lockorder", "lockorder.go"): filepath.Join(root, "testdata/lockorder/lockorder.go")}
	for file, text := range texts {
		if strings.Contains(text, "sync.Mutex") {
			t.Errorf("%s has a mutex that is not in lockLevels", file)
		}
		text = regexp.MustCompile(`(?m)^package \w+$`).ReplaceAllString(text,
			"$0; import (\n\"sync\"\n\"github.com/leidenzipper/zipper/forwarder/lockorder\"\n)")
		text = strings.Replace(text, "\n\t\"sync\"\n", "\n", 1)
		to := filepath.Join(dir, fmt.Sprintf("%d.go", len(overlay)))
		if err := os.WriteFile(to, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		overlay[filepath.Join(root, file)] = to
	}
	list, err := json.Marshal(map[string]any{"Replace": overlay})
	if err != nil {
		t.Fatal(err)
	}
	file, program := filepath.Join(dir, "overlay.json"), filepath.Join(dir, "forwarder.test")
	if err := os.WriteFile(file, list, 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "go", "test", "-c", "-vet=off", "-overlay", file, "-o", program, ".")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return program
}
