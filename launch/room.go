package launch

import (
	"fmt"
	"io"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/leidenzipper/zipper/launch/spec"
)

// Open MPI keeps files in the run directory and in /dev/shm that its processes map into memory. A
// file system without room for them shows as SIGBUS at some write, or as PMIx errors after which
// mpirun waits for ever. So FindRoom measures the room before mpirun starts.

// room is the number of bytes that the clusters that are started together on this host need.
type room struct {
	// session is needed in the run directory.
	session uint64
	// shared is needed at most for memory that ranks share, in /dev/shm.
	shared uint64
}

// roomFor returns what the clusters need. Those with ranks on other hosts need nothing here, nor do
// those of MPICH, whose own errors name /dev/shm.
func roomFor(halves []*Half) (n room) {
	for _, h := range halves {
		if h.Cluster.MPI != spec.OpenMPI || h.Nodes != "" || !h.Cluster.Here() {
			continue
		}
		n.session += sessionRoom
		if h.Cluster.Ranks > 1 {
			n.shared += uint64(h.Cluster.Ranks) * segmentRoom
		}
	}
	return n
}

// FindRoom decides where halves that are about to start together on this host, with the same
// RunDir, have their shared memory. It returns an error if their files have no room, and a note if
// shared memory goes to the run directory because /dev/shm has no room. Prepare must have succeeded
// for each of them.
func FindRoom(halves ...*Half) (note string, err error) {
	for _, h := range halves {
		h.settled = true
	}
	need := roomFor(halves)
	if need.session == 0 {
		return "", nil
	}
	base := runBase(halves[0].RunDir)
	session, err := free(base)
	if err != nil {
		return "", nil // newRundir reports the error
	}
	if sameFileSystem(base, sharedMemory) {
		need.session, need.shared = need.session+need.shared, 0
	}
	if session < need.session {
		return "", fmt.Errorf("the run directory has no room: %s has %s free, and Open MPI takes %s there for the clusters on this host: make room, or choose another place with --run-dir DIR or TMPDIR",
			base, mebibytes(session), mebibytes(need.session))
	}
	shared, err := free(sharedMemory)
	if err != nil || shared >= need.shared {
		return "", nil // without the directory, Open MPI chooses other means
	}
	if session < need.session+need.shared {
		return "", fmt.Errorf("no room for shared memory: %s has %s free, and the run directory in %s %s, and Open MPI takes up to %s for the clusters on this host: make %[1]s larger (mount -o remount,size=SIZE; --shm-size of a container), or choose a run directory with room by --run-dir DIR or TMPDIR",
			sharedMemory, mebibytes(shared), base, mebibytes(session), mebibytes(need.shared))
	}
	for _, h := range halves {
		h.onDisk = true
	}
	return fmt.Sprintf("shared memory is in %s, because %s has %s free and Open MPI takes up to %s: messages inside the clusters may be slower",
		base, sharedMemory, mebibytes(shared), mebibytes(need.shared)), nil
}

// free returns the number of bytes that this user may still write to a directory's file system.
func free(dir string) (bytes uint64, err error) {
	var st unix.Statfs_t
	err = unix.Statfs(dir, &st)
	return available(&st), err
}

// available returns the number of bytes that are free for users. Blocks are counted in units of
// Frsize. Bsize is the size of transfers, which is larger on some network file systems. File
// systems that set only Bsize leave Frsize 0.
func available(st *unix.Statfs_t) uint64 {
	unit := st.Frsize
	if unit == 0 {
		unit = st.Bsize
	}
	return st.Bavail * uint64(unit)
}

func sameFileSystem(a, b string) bool {
	var one, other unix.Stat_t
	return unix.Stat(a, &one) == nil && unix.Stat(b, &other) == nil && one.Dev == other.Dev
}

// busError explains the end of a process by SIGBUS.
func (r *rundir) busError() string {
	text := "a process has ended by SIGBUS, which a write to shared memory gets if its file system is full:"
	for _, d := range r.dirs() {
		if bytes, err := free(d); err == nil {
			text += fmt.Sprintf(" %s has %s free;", filepath.Dir(d), mebibytes(bytes))
		}
	}
	return text + " make room there, or choose another run directory with --run-dir DIR or TMPDIR"
}

func mebibytes(bytes uint64) string { return fmt.Sprintf("%.1f MiB", float64(bytes)/(1<<20)) }

// printNote prints a note, if there is one, for the user.
func printNote(w io.Writer, note string) {
	if note != "" {
		fmt.Fprintln(w, "zipper:", note)
	}
}
