package launch

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"
)

// A run directory is in use while its launcher holds a lock on the file "lock" in it. The kernel
// releases the lock when the launcher ends for any reason, and has it in every PID namespace:
// launchers in containers that share /tmp or /dev/shm do not see each other's processes. The file
// gets its name after it is locked, so a directory without it is never stale: its launcher is still
// making it, or its file system has no locks.
const lockName = "lock"

// lockDir locks a directory that this process has just made. The lock is held until the file is
// closed; processes that this one starts do not inherit it. The file is nil where the file system
// has no locks.
func lockDir(dir string) (*os.File, error) {
	unnamed := filepath.Join(dir, lockName+".new")
	f, err := os.OpenFile(unnamed, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, err
	}
	if err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); noLocks(err) {
		return nil, errors.Join(f.Close(), os.Remove(unnamed))
	}
	if err == nil {
		err = os.Rename(unnamed, filepath.Join(dir, lockName))
	}
	if err != nil {
		f.Close()
		return nil, fmt.Errorf("cannot lock %s: %w", unnamed, err)
	}
	return f, nil
}

// noLocks tells whether a file system has refused a lock because it supports none.
func noLocks(err error) bool {
	return errors.Is(err, unix.ENOSYS) || errors.Is(err, unix.EOPNOTSUPP) || errors.Is(err, unix.ENOLCK) ||
		errors.Is(err, unix.EINVAL)
}

// removeStale removes the user's directories in base whose names begin with prefix and whose
// launchers have ended. Errors are left to the next launcher.
func removeStale(base, prefix string) {
	dirs, err := filepath.Glob(filepath.Join(base, prefix+"*"))
	if err != nil {
		return
	}
	for _, d := range dirs {
		if !own(d) {
			continue
		}
		f, err := os.OpenFile(filepath.Join(d, lockName), os.O_RDWR|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
		if err != nil {
			continue
		}
		err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		f.Close()
		if err == nil {
			removeDir(d)
		}
	}
}

// removeDir removes a run directory whose launcher has ended, or is about to. The caller must have
// closed its lock file: NFS keeps a removed file that is open under another name in the directory,
// which then cannot be removed. The lock file is removed last, so that a directory of which
// something cannot be removed yet is still stale for the next launcher.
func removeDir(dir string) {
	files, err := os.ReadDir(dir)
	for _, f := range files {
		if f.Name() != lockName {
			err = errors.Join(err, os.RemoveAll(filepath.Join(dir, f.Name())))
		}
	}
	if err == nil {
		os.RemoveAll(dir)
	}
}

// own tells whether a path is a directory of this user, and not a link to one.
func own(path string) bool {
	st, err := os.Lstat(path)
	if err != nil || !st.IsDir() {
		return false
	}
	sys, ok := st.Sys().(*syscall.Stat_t)
	return ok && int(sys.Uid) == os.Getuid()
}
