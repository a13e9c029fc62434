package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestClosedDescriptors checks that a program that closes its files twice closes no descriptor of
// MMPI's. A program that does close them gets one error that reports it, and nothing is written
// into files that the program has opened since.
func TestClosedDescriptors(t *testing.T) {
	for _, c := range []struct {
		how  string
		ends bool
	}{{"twice", false}, {"sockets", true}, {"timers", true}} {
		for _, mpi := range []string{OpenMPI, MPICH} {
			t.Run(c.how+" "+mpi, func(t *testing.T) {
				b := New(t)
				dir := t.TempDir()
				job := Job{Clusters: []Cluster{A(1, mpi), B(1, OpenMPI)}}
				r := b.Zipped(job, compileFor(b, job.Clusters, "c/closing.c"), c.how, dir)
				const says = "has closed descriptors that are not its own"
				if failed := r.Status != 0; failed != c.ends || strings.Contains(r.Stderr, says) != c.ends {
					t.Errorf("%v", r)
				}
				files, err := filepath.Glob(filepath.Join(dir, "rank0.*"))
				if err != nil || len(files) != 40 && !c.ends {
					t.Errorf("%d files, %v", len(files), err)
				}
				for _, f := range files { // the job may end before all files are written
					if text, err := os.ReadFile(f); err != nil || !strings.HasPrefix("mine\n", string(text)) {
						t.Errorf("%s: %q, %v", f, text, err)
					}
				}
			})
		}
	}
}
