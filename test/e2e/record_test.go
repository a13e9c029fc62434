package e2e

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/leidenzipper/zipper/internal/traffic/trace"
)

// TestRecordedMatrix checks that the recorded matrix of NPB CG agrees with the forwarder's counts
// between the clusters.
func TestRecordedMatrix(t *testing.T) {
	for _, mpi := range []string{OpenMPI, MPICH} {
		t.Run(mpi, func(t *testing.T) {
			b := New(t)
			clusters := []Cluster{A(2, mpi), B(2, mpi)}
			path := filepath.Join(t.TempDir(), "cg.trace")
			r := b.OK(b.Zipped(Job{Clusters: clusters, Flags: []string{"--record", path, "--json"}},
				filepath.Join(b.Root, "bin", "zipper-mpibench-{mpi}"), "npb", "cg", "S"))
			f, err := os.Open(path)
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			x, err := trace.Read(f)
			if err != nil {
				t.Fatal(err)
			}
			matrix, local := x.Matrix(), int64(0)
			var crossed [2]int64
			for pair, bytes := range matrix {
				if pair[0]/2 == pair[1]/2 {
					local += bytes
				} else {
					crossed[pair[0]/2] += bytes
				}
			}
			var out struct {
				Traffic []struct {
					From, To string
					Bytes    int64
				}
			}
			if b.Summary(r, &out); len(out.Traffic) != 2 {
				t.Fatal(r)
			}
			for _, c := range out.Traffic {
				if got := crossed[map[string]int{"a": 0, "b": 1}[c.From]]; got != c.Bytes || got == 0 {
					t.Errorf("%s to %s: recorded %d bytes, the forwarder counted %d", c.From, c.To, got, c.Bytes)
				}
			}
			if local == 0 {
				t.Error("nothing was recorded inside the clusters")
			}
			inside := 0
			for _, m := range x.Messages {
				if m.Src/2 == m.Dst/2 {
					inside++
				}
			}
			if inside == 0 {
				t.Error("no message inside the clusters has times")
			}
			if len(x.Messages) == 0 || len(x.Hosts) != 4 {
				t.Errorf("%d messages with times, %d hosts", len(x.Messages), len(x.Hosts))
			}
			if left, _ := filepath.Glob(path + ".*"); len(left) > 0 {
				t.Errorf("parts are left: %v", left)
			}
		})
	}
}
