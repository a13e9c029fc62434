package optional

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestUnshareFailsUnderScriptsTest checks that a test that needs namespaces is skipped where there
// are none, but fails for root under scripts/test.
func TestUnshareFailsUnderScriptsTest(t *testing.T) {
	if again {
		Unshare(t, "--map-root-user", "--mount")
		return
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "unshare"), []byte("#!/bin/sh\nexit 1\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	with := "--- SKIP"
	if os.Getuid() == 0 {
		with = "--- FAIL"
	}
	for needs, want := range map[string]string{"": "--- SKIP", "1": with} {
		cmd := exec.Command(os.Args[0], "-test.v", "-test.run", "^"+t.Name()+"$")
		cmd.Env = append(os.Environ(), "OPTIONAL_AGAIN=1", inner.Variable+"=1", "PATH="+dir, NeedsVariable+"="+needs)
		out, err := cmd.CombinedOutput()
		if !strings.Contains(string(out), want) || (err == nil) != (want == "--- SKIP") {
			t.Errorf("%s=%s: %v, want %s\n%s", NeedsVariable, needs, err, want, out)
		}
	}
}
