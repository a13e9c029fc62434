package launch

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

// process writes the files that /proc has for a process.
func process(t *testing.T, proc string, pid, parent int, libraries ...string) {
	t.Helper()
	dir := filepath.Join(proc, fmt.Sprint(pid))
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	maps := "7f00-7f01 r-xp 00000000 00:00 0\n"
	for _, l := range libraries {
		maps += "7f00-7f01 r-xp 00000000 fe:01 42      " + l + "\n"
	}
	for name, text := range map[string]string{
		"stat": fmt.Sprintf("%d (a (b) c) S %d 1 1", pid, parent), "comm": "prog\n", "maps": maps,
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

func TestUnzippedProcessIsFound(t *testing.T) {
	proc := t.TempDir()
	process(t, proc, 10, 1)
	process(t, proc, 11, 10, "/z/lib/libmmpi-audit.so")
	process(t, proc, 12, 11, "/usr/lib/libmpi.so.40.30.4")
	process(t, proc, 20, 1, "/usr/lib/libmpich.so.12") // of another user
	found, zipped := strays(proc, 10)
	if len(found) != 1 || found[0] != (stray{12, "prog", "/usr/lib/libmpi.so.40.30.4"}) || zipped {
		t.Errorf("got %v, %v", found, zipped)
	}
	var s stray
	if err := findStray(context.Background(), proc, 10); !errors.As(err, &s) || s.pid != 12 {
		t.Errorf("got %v", err)
	}
	// A zipped program may start programs that are not zipped.
	process(t, proc, 11, 10, "/usr/lib/libmpi.so.40.30.4", "/z/lib/libmmpi-openmpi.so")
	if found, zipped := strays(proc, 10); len(found) > 0 || !zipped {
		t.Errorf("got %v, %v", found, zipped)
	}
	if err := findStray(context.Background(), proc, 10); err != nil {
		t.Error(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := findStray(ctx, proc, 20); err != nil {
		t.Error(err)
	}
}
