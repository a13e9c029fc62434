package e2e

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/leidenzipper/zipper/internal/optional"
)

// TestSanitizers runs programs that are built with a sanitizer, whose library must come before all
// others: needed by the program only, and preloaded by the user as well.
func TestSanitizers(t *testing.T) {
	const preloaded = "LD_PRELOAD=libasan.so.8" // of GCC 12 and newer
	for _, run := range []struct {
		kind string
		env  []string
		s    split
	}{
		// MPI libraries leave memory allocated at their end, which is not a leak of MMPI's
		{"address", []string{"ASAN_OPTIONS=detect_leaks=0"}, mixedPair},
		{"address", []string{"ASAN_OPTIONS=detect_leaks=0", preloaded}, oneOne},
		{"address", []string{"ASAN_OPTIONS=detect_leaks=0", preloaded}, mpichPair},
		// MPICH 4.0 crashes natively when it ends with the thread sanitizer. At the address of PMIx
		// 5's shared memory the sanitizer has other data
		{"thread", []string{"TSAN_OPTIONS=report_bugs=0", "PMIX_MCA_gds=hash"}, oneOne},
	} {
		overSplits(t, run.kind+" "+strings.Join(run.env, " "), []split{run.s}, func(b *Bed, s split) {
			if slices.Contains(run.env, preloaded) {
				if r := b.Run(nil, []string{preloaded}, "true"); strings.Contains(r.Stderr, "cannot be preloaded") {
					t.Skipf("GCC here has another libasan: %s", r.Stderr)
				}
			}
			if run.kind == "thread" {
				optional.Processor(b.T, "the addresses at which the thread sanitizer has its data")
			}
			path := compileFor(b, s.clusters, "c/sanitized.c", "-fsanitize="+run.kind)
			native := b.OK(b.Native(OpenMPI, s.ranks(), strings.ReplaceAll(compileFor(b, s.clusters, "c/sanitized.c"),
				"{mpi}", OpenMPI)))
			job := Job{Clusters: s.clusters, Env: run.env}
			r := b.Zipped(job, path)
			b.okOrFailsNatively(r, job, path)
			b.Same(native, r, nil)
			if run.kind == "address" {
				r := b.Zipped(job, path, "overflow")
				if r.Status == 0 || !strings.Contains(r.Stderr, "heap-buffer-overflow") {
					b.T.Errorf("the fault is not reported:\n%v", r)
				}
			}
		})
	}
	b := New(t)
	r := b.OK(b.Run(nil, nil, b.Zipper, "doctor", b.Compile(OpenMPI, "test/programs/c/sanitized.c",
		"-fsanitize=address")))
	if want := "libasan.so"; !strings.Contains(r.Stdout, want) {
		t.Errorf("doctor does not say %q:\n%v", want, r)
	}
}

// TestValgrind runs a program in valgrind, which reports the program's fault and none of the
// engine's.
func TestValgrind(t *testing.T) {
	overSplits(t, "", byLength([]split{oneOne}, []split{oneOne, mpichPair, mixedPair}), func(b *Bed, s split) {
		optional.Processor(b.T, "the speed that valgrind, an emulator itself, needs to join a job in time")
		path := compileFor(b, s.clusters, "c/sanitized.c")
		r := b.OK(b.Zipped(Job{Clusters: s.clusters}, "env", "-u", "LD_AUDIT",
			"LD_PRELOAD="+filepath.Join(b.Root, "lib/libmmpi-{mpi}.so"), "valgrind", "-q",
			"--suppressions="+filepath.Join(b.Root, "dist/valgrind.supp"), path, "overflow"))
		b.Same(b.OK(b.Native(OpenMPI, s.ranks(), strings.ReplaceAll(path, "{mpi}", OpenMPI))), r, nil)
		b.Fails(r, 0, "Invalid write", "sanitized.c")
		if regexp.MustCompile(`\(in .*libmmpi-engine`).MatchString(r.Stderr) {
			b.T.Errorf("valgrind reports the engine:\n%v", r)
		}
	})
}

// TestProgramWithoutMMPIIsReported has scripts start MPI without MMPI, so that every process runs
// in a world of its own for a minute: the job ends early, with the reason.
func TestProgramWithoutMMPIIsReported(t *testing.T) {
	const alone = `import ctypes, time
mpi = ctypes.CDLL("libmpi.so.40", mode=ctypes.RTLD_GLOBAL)
mpi.MPI_Init(None, None)
time.sleep(300)
`
	b := New(t)
	// Open MPI 5 does not start without HOME
	for _, how := range [][]string{{"-i", "PATH=" + os.Getenv("PATH"), "HOME=" + os.Getenv("HOME")},
		{"-u", "LD_AUDIT", "LD_PRELOAD=libm.so.6"}} {
		argv := append(append([]string{"/usr/bin/env"}, how...), python3, "-c", alone)
		r := b.Zipped(Job{Clusters: []Cluster{A(1, OpenMPI), B(1, OpenMPI)}}, argv...)
		b.Fails(r, 1, "libmpi.so.40", "without MMPI", "LD_PRELOAD")
	}
}
