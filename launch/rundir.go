package launch

import (
	"cmp"
	"fmt"
	"hash/crc32"
	"os"
	"path/filepath"
)

// rundir has the directories of a launcher while its job runs: one in the temporary directory and
// one in memory (/dev/shm), both private to the user and removed at the end.
type rundir struct {
	dir string
	// shared is the directory in /dev/shm; it is empty if /dev/shm is missing or read-only.
	shared string
	locks  []*os.File
	// stop stops the janitor.
	stop func()
}

// newRundir makes the directories under base, or under the system's temporary directory if base is
// empty. It also removes the directories of launchers that were killed before they could clean up.
// Names do not have the job's id, because every user of the host could read it there; a file in the
// directories has it.
func newRundir(base, job string) (*rundir, error) {
	r := &rundir{}
	err := r.make(runBase(base))
	if err == nil {
		err = r.note(job)
	}
	if err != nil {
		r.remove()
		return nil, fmt.Errorf("cannot make the run directory: %w; choose another place with --run-dir DIR or TMPDIR", err)
	}
	return r, nil
}

// sharedMemory is the file system for memory that processes share.
const sharedMemory = "/dev/shm"

// runBase returns the place of run directories: dir, or the system's temporary directory.
func runBase(dir string) string { return cmp.Or(dir, os.TempDir()) }

// make makes the directories, which the janitor removes from then on.
func (r *rundir) make(base string) (err error) {
	removeStale(base, mine())
	if r.dir, err = os.MkdirTemp(base, mine()); err != nil {
		return err
	}
	removeStale(sharedMemory, mine())
	if d, err := os.MkdirTemp(sharedMemory, mine()); err == nil {
		r.shared = d
	}
	r.stop = clean(r.dirs()...)
	return nil
}

// note locks the directories and writes the job's id into them.
func (r *rundir) note(job string) error {
	for _, d := range r.dirs() {
		lock, err := lockDir(d)
		if err != nil {
			return err
		}
		r.locks = append(r.locks, lock)
		if err := os.WriteFile(filepath.Join(d, "job"), []byte(job+"\n"), 0o600); err != nil {
			return err
		}
	}
	return nil
}

func (r *rundir) dirs() (list []string) {
	for _, d := range []string{r.dir, r.shared} {
		if d != "" {
			list = append(list, d)
		}
	}
	return list
}

func (r *rundir) remove() {
	for _, l := range r.locks {
		l.Close()
	}
	for _, d := range r.dirs() {
		removeDir(d)
	}
	if r.stop != nil {
		r.stop()
	}
}

// mine returns the beginning of the names of this user's directories that were made on this host.
// Other hosts may have theirs in the same place, on a shared file system, and not every such file
// system has locks that hosts share. The host's name is hashed to a number because names of sockets
// below are limited.
func mine() string {
	host, _ := os.Hostname()
	return fmt.Sprintf("zipper-%d-%08x-", os.Getuid(), crc32.ChecksumIEEE([]byte(host)))
}
