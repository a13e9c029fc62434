package launch

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/leidenzipper/zipper/internal/optional"
)

// TestSharedMemoryGoesWhereRoomIs starts a half of two ranks of Open MPI over a run directory and a
// /dev/shm of known sizes, in a mount namespace.
func TestSharedMemoryGoesWhereRoomIs(t *testing.T) {
	const variable = "ZIPPER_TEST_ROOM_DIR"
	if dir := os.Getenv(variable); dir != "" {
		h := testHalf(t, `echo "disk=$OMPI_MCA_orte_tmpdir_base memory=$OMPI_MCA_btl_vader_backing_directory"`)
		h.RunDir = dir
		var out, errs bytes.Buffer
		if _, err := h.Run(context.Background(), nil, &out, &errs); err != nil {
			errs.WriteString(err.Error())
		}
		if _, err := os.Stdout.WriteString("result: " + out.String() + errs.String() + "\n"); err != nil {
			t.Fatal(err)
		}
		return
	}
	words := optional.Unshare(t, "--map-root-user", "--mount")
	dir := t.TempDir()
	for _, tc := range []struct {
		name, disk, memory string
		want               []string // parts of the output, in order
	}{
		{"room", "9m", "9m", []string{"disk=" + dir + "/zipper-", "memory=/dev/shm/zipper-"}},
		{"no room on disk", "8m", "9m", []string{"cluster a: the run directory has no room: " + dir + " has 8.0 MiB free", "takes 9.0 MiB", "--run-dir"}},
		{"no room in memory", "18m", "8m", []string{"memory=" + dir + "/zipper-", "zipper: shared memory is in " + dir, "/dev/shm has 8.0 MiB free"}},
		{"no room", "16m", "8m", []string{"no room for shared memory: /dev/shm has 8.0 MiB free", dir + " 16.0 MiB", "up to 8.0 MiB", "--run-dir"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			const script = `mount -t tmpfs -o size="$2" tmpfs "$1" && mount -t tmpfs -o size="$3" tmpfs /dev/shm && exec "$4" -test.run '^TestSharedMemoryGoesWhereRoomIs$'`
			cmd := exec.Command(words[0], append(words[1:], "sh", "-c", script, "sh", dir, tc.disk, tc.memory, os.Args[0])...)
			cmd.Env = append(os.Environ(), variable+"="+dir)
			out, err := cmd.CombinedOutput()
			if err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			rest, at := string(out), 0
			for _, w := range tc.want {
				if at = strings.Index(rest, w); at < 0 {
					t.Fatalf("without %q:\n%s", w, out)
				}
				rest = rest[at+len(w):]
			}
		})
	}
}

// TestBusErrorNamesPlaces checks that the error for a process that ended by SIGBUS names the
// remaining room.
func TestBusErrorNamesPlaces(t *testing.T) {
	h := testHalf(t, "exit 135") // the status that mpirun has for such a process
	var errs bytes.Buffer
	status, err := h.Run(context.Background(), nil, &bytes.Buffer{}, &errs)
	if status != 135 || err != nil || !strings.Contains(errs.String(), h.RunDir+" has ") ||
		!strings.Contains(errs.String(), "SIGBUS") {
		t.Errorf("status %d, %v\n%s", status, err, &errs)
	}
}

// TestClustersThatStartTogetherCountTogether checks that clusters that start together count
// together, where Open MPI runs them on this host.
func TestClustersThatStartTogetherCountTogether(t *testing.T) {
	a, b, one, elsewhere := testHalf(t, ""), testHalf(t, ""), testHalf(t, ""), testHalf(t, "")
	b.Cluster.MPI = "mpich"
	one.Cluster.Ranks = 1
	elsewhere.Cluster.Hosts = "hosts"
	want := room{session: 2 * sessionRoom, shared: 2 * segmentRoom}
	if got := roomFor([]*Half{a, b, one, elsewhere}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
}

// TestFreeBlocksAreCountedInTheirUnit checks that free blocks are counted in the unit that the file
// system has.
func TestFreeBlocksAreCountedInTheirUnit(t *testing.T) {
	for _, tc := range []struct {
		st   unix.Statfs_t
		want uint64
	}{
		{unix.Statfs_t{Bavail: 10, Frsize: 4096, Bsize: 1 << 20}, 40960},
		{unix.Statfs_t{Bavail: 10, Bsize: 512}, 5120},
	} {
		if got := available(&tc.st); got != tc.want {
			t.Errorf("%+v: %d bytes, want %d", tc.st, got, tc.want)
		}
	}
}
