package launch

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/leidenzipper/zipper/internal/optional"
)

// TestLockFileIsClosedFirst checks that no run directory is removed while its lock file is open:
// NFS keeps the file under another name until it is closed, and the directory with it.
func TestLockFileIsClosedFirst(t *testing.T) {
	for name, end := range map[string]func(r *rundir){
		"launcher ends": (*rundir).remove,
		"stale": func(r *rundir) {
			release(t, r)
			removeStale(filepath.Dir(r.dir), mine())
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := newTestRundir(t, t.TempDir())
			events := watch(t, r.dir, unix.IN_OPEN|unix.IN_CLOSE|unix.IN_DELETE)
			end(r)
			open := len(r.locks) > 0
			deleted := false
			for _, e := range events() {
				if e.name != lockName {
					continue
				}
				switch {
				case e.mask&unix.IN_OPEN != 0:
					open = true
				case e.mask&unix.IN_CLOSE != 0:
					open = false
				case e.mask&unix.IN_DELETE != 0:
					deleted = true
					if open {
						t.Error("the lock file is removed while it is open")
					}
				}
			}
			if _, err := os.Stat(r.dir); !deleted || !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("the directory is not removed: %v", err)
			}
		})
	}
}

// TestDirectoryStaysStale checks that a directory of which a part cannot be removed keeps its lock
// file, by which the next launcher finds it. A mount is such a part.
func TestDirectoryStaysStale(t *testing.T) {
	const variable = "ZIPPER_TEST_STALE"
	if os.Getenv(variable) == "" {
		words := optional.Unshare(t, "--map-root-user", "--mount")
		cmd := exec.Command(words[0], append(words[1:], os.Args[0], "-test.run", "^"+t.Name()+"$")...)
		cmd.Env = append(os.Environ(), variable+"=1")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		return
	}
	r := newTestRundir(t, t.TempDir())
	busy := filepath.Join(r.dir, "busy")
	if err := errors.Join(os.Mkdir(busy, 0o700), unix.Mount("tmpfs", busy, "tmpfs", 0, "")); err != nil {
		t.Fatal(err)
	}
	release(t, r)
	base := filepath.Dir(r.dir)
	removeStale(base, mine())
	if _, err := os.Stat(filepath.Join(r.dir, lockName)); err != nil {
		t.Fatalf("the directory has no lock file any more: %v", err)
	}
	if err := unix.Unmount(busy, 0); err != nil {
		t.Fatal(err)
	}
	removeStale(base, mine())
	if _, err := os.Stat(r.dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the directory is still there: %v", err)
	}
}

type event struct {
	mask uint32
	name string
}

// watch records the events in the files of a directory. The function that it returns ends the
// record and returns the events.
func watch(t *testing.T, dir string, mask uint32) func() []event {
	t.Helper()
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	if err != nil {
		t.Fatal(err)
	}
	f := os.NewFile(uintptr(fd), "inotify")
	t.Cleanup(func() { f.Close() })
	if _, err := unix.InotifyAddWatch(fd, dir, mask); err != nil {
		t.Fatal(err)
	}
	return func() (list []event) {
		buf := make([]byte, 1<<16)
		n, err := unix.Read(fd, buf)
		if err != nil {
			t.Fatal(err)
		}
		for b := buf[:n]; len(b) > 0; {
			length := binary.NativeEndian.Uint32(b[12:])
			name := b[unix.SizeofInotifyEvent:][:length]
			list = append(list, event{binary.NativeEndian.Uint32(b[4:]), string(bytes.TrimRight(name, "\x00"))})
			b = b[unix.SizeofInotifyEvent+length:]
		}
		return list
	}
}
