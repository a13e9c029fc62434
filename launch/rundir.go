package launch

import (
	"errors"
	"fmt"
	"hash/crc32"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// rundir is what a launcher keeps on disk while its job runs: one directory in the temporary
// directory and one in memory (/dev/shm), both private to the user and removed at the end.
type rundir struct {
	dir    string
	shared string // "" if there is no /dev/shm to write to
	stop   func() // of the janitor
}

// newRundir makes the directories under base ("" = the system's temporary directory). Directories
// of launchers that were killed before they could clean up are removed on this occasion. Names do
// not have the job's id, which everybody on the host could read there: a file in them has.
func newRundir(base, job string) (*rundir, error) {
	hint := "choose another place with --run-dir DIR or TMPDIR"
	if base == "" {
		base = os.TempDir()
	}
	removeStale(base)
	name := fmt.Sprintf("%s%d", mine(), os.Getpid())
	dir, err := os.MkdirTemp(base, name+"-")
	if err != nil {
		return nil, fmt.Errorf("cannot make the run directory: %w; %s", err, hint)
	}
	r := &rundir{dir: dir}
	removeStale("/dev/shm")
	if d, err := os.MkdirTemp("/dev/shm", name+"-"); err == nil {
		r.shared = d
	}
	dirs := []string{r.dir}
	if r.shared != "" {
		dirs = append(dirs, r.shared)
	}
	r.stop = clean(dirs...)
	for _, d := range dirs {
		if err := os.WriteFile(filepath.Join(d, "job"), []byte(job+"\n"), 0o600); err != nil {
			r.remove()
			return nil, fmt.Errorf("cannot write to the run directory: %w; %s", err, hint)
		}
	}
	return r, nil
}

func (r *rundir) remove() {
	os.RemoveAll(r.dir)
	if r.shared != "" {
		os.RemoveAll(r.shared)
	}
	r.stop()
}

// mine begins the names of this user's directories that were made on this host: others may have
// theirs in the same place, on a file system that all share, and their processes cannot be asked
// after from here. The host's name comes as a number because names of sockets below are limited.
func mine() string {
	host, _ := os.Hostname()
	return fmt.Sprintf("zipper-%d-%08x-", os.Getuid(), crc32.ChecksumIEEE([]byte(host)))
}

func removeStale(base string) {
	prefix := mine()
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
