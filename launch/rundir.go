package launch

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// rundir is what a launcher keeps on disk while its job runs: one directory in the temporary directory and one
// in memory (/dev/shm), both private to the user and removed at the end.
type rundir struct {
	dir    string
	shared string // "" if there is no /dev/shm to write to
}

// newRundir makes the directories under base ("" = the system's temporary directory). Directories of launchers
// that were killed before they could clean up are removed on this occasion.
func newRundir(base, job string) (*rundir, error) {
	hint := "choose another place with --run-dir DIR or TMPDIR"
	if base == "" {
		base = os.TempDir()
	}
	removeStale(base)
	name := fmt.Sprintf("zipper-%d-%d-%s", os.Getuid(), os.Getpid(), job)
	r := &rundir{}
	dir, err := os.MkdirTemp(base, name+"-")
	if err != nil {
		return nil, fmt.Errorf("cannot make the run directory: %w; %s", err, hint)
	}
	r.dir = dir
	removeStale("/dev/shm")
	if d, err := os.MkdirTemp("/dev/shm", name+"-"); err == nil {
		r.shared = d
	}
	return r, nil
}

func (r *rundir) remove() {
	os.RemoveAll(r.dir)
	if r.shared != "" {
		os.RemoveAll(r.shared)
	}
}

func removeStale(base string) {
	prefix := fmt.Sprintf("zipper-%d-", os.Getuid())
	entries, err := filepath.Glob(filepath.Join(base, prefix+"*"))
	if err != nil {
		return
	}
	for _, e := range entries {
		pid, _, ok := strings.Cut(strings.TrimPrefix(filepath.Base(e), prefix), "-")
		n, err := strconv.Atoi(pid)
		if ok && err == nil && n > 0 && errors.Is(syscall.Kill(n, 0), syscall.ESRCH) {
			os.RemoveAll(e)
		}
	}
}
