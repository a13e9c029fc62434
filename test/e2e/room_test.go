package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/leidenzipper/zipper/internal/optional"
)

// inMounts returns words before a command that run it with file systems mounted by a script, in a
// mount namespace.
func inMounts(t *testing.T, script string, args ...string) []string {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("needs root, for mounts")
	}
	words := append(optional.Unshare(t, "--map-root-user", "--mount"), "sh", "-c",
		script+` && shift "$0" && exec "$@"`, strconv.Itoa(len(args)))
	return append(words, args...)
}

// TestSmallRunDirectory runs programs with little room for their files, or for the memory that
// ranks share: they end well, or the error names the directory.
func TestSmallRunDirectory(t *testing.T) {
	for _, tc := range []struct {
		name, mpi, disk, memory string
		// ranks is the number of ranks of each cluster.
		ranks int
		// want is in the error; "": the job ends well.
		want string
	}{
		{"room", OpenMPI, "20m", "64m", 2, ""},
		{"one cluster's room", OpenMPI, "12m", "64m", 2, "the run directory has no room: "},
		{"little on disk", OpenMPI, "5m", "64m", 2, "the run directory has no room: "},
		{"nothing on disk", OpenMPI, "4k", "64m", 2, "the run directory has no room: "},
		{"little memory", OpenMPI, "128m", "5m", 8, ""},
		{"little of both", OpenMPI, "64m", "5m", 8, "no room for shared memory: /dev/shm has 5.0 MiB free"},
		{"nothing on disk, MPICH", MPICH, "4k", "64m", 2, "cannot make the run directory: "},
		{"little memory, MPICH", MPICH, "64m", "1m", 2, "/dev/shm"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			b := New(t)
			program := b.Compile(tc.mpi, "test/programs/c/isendrecv.c")
			dir := t.TempDir()
			words := inMounts(t, `mount -t tmpfs -o size="$2" tmpfs "$1" && mount -t tmpfs -o size="$3" tmpfs /dev/shm &&
				{ [ "$2" != 4k ] || echo full >"$1/file"; }`, dir, tc.disk, tc.memory)
			r := b.zippedBy(words, Job{Clusters: []Cluster{A(tc.ranks, tc.mpi), B(tc.ranks, tc.mpi)},
				Flags: []string{"--run-dir", dir}}, program)
			if tc.want == "" {
				b.OK(r)
			} else if r.Status == 0 || !strings.Contains(r.Stdout+r.Stderr, tc.want) {
				t.Errorf("want %q:\n%v", tc.want, r)
			}
		})
	}
}

// TestWithoutProc checks that the error names /proc if it is missing.
func TestWithoutProc(t *testing.T) {
	b := New(t)
	optional.Processor(t, "an absent /proc, because it answers for a process's own files there")
	program := b.Compile(OpenMPI, "test/programs/c/isendrecv.c")
	r := b.zippedBy(inMounts(t, "mount -t tmpfs tmpfs /proc"), Job{Clusters: []Cluster{A(1, OpenMPI), B(1, OpenMPI)}},
		program)
	if r.Status == 0 || !strings.Contains(r.Stderr, "is /proc mounted here?") {
		t.Error(r)
	}
}

// TestDoctorFindsNoRoom checks that the doctor names a run directory without room, also one that
// has room for each of the clusters alone.
func TestDoctorFindsNoRoom(t *testing.T) {
	b := New(t)
	program, dir, file := b.Compile(OpenMPI, "test/programs/c/isendrecv.c"), t.TempDir(), filepath.Join(t.TempDir(), "job.yaml")
	job := fmt.Sprintf("program: %s\nclusters:\n  - {name: a, ranks: 2, mpi: openmpi}\n  - {name: b, ranks: 2, mpi: openmpi}\n", program)
	if err := os.WriteFile(file, []byte(job), 0o600); err != nil {
		t.Fatal(err)
	}
	for size, want := range map[string]bool{"5m": true, "12m": true, "64m": false} {
		words := inMounts(t, `mount -t tmpfs -o size="$2" tmpfs "$1"`, dir, size)
		r := b.Run(nil, []string{"TMPDIR=" + dir}, append(words, b.Zipper, "doctor", "--file", file)...)
		got := strings.Contains(r.Stdout, "this host: the run directory has no room: "+dir)
		if got != want || want && r.Status == 0 {
			t.Errorf("%s: %v", size, r)
		}
	}
}
