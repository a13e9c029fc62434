package e2e

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/leidenzipper/zipper/bench/npb"
	"github.com/leidenzipper/zipper/bench/osu"
)

// goProgram builds a Go MPI program for an MPI library.
func (b *Bed) goProgram(mpi, pkg string) string {
	b.T.Helper()
	return b.goBuild(mpi, pkg, "build")
}

// goBuild runs go build, or go test -c for the package's tests.
func (b *Bed) goBuild(mpi, pkg string, command ...string) string {
	b.T.Helper()
	out := filepath.Join(b.Root, "build", "e2e", mpi, filepath.Base(pkg))
	cmd := exec.Command("go", append(command, "-tags", mpi, "-o", out, pkg)...)
	cmd.Dir = b.Root
	cmd.Env = append(os.Environ(), "PKG_CONFIG_PATH="+filepath.Join(b.Root, "lib", "pkgconfig"))
	if msg, err := cmd.CombinedOutput(); err != nil {
		b.T.Fatalf("%s: %v\n%s", cmd, err, msg)
	}
	return out
}

// TestGoAPI checks that the Go API has the same results natively and over clusters, at each thread
// level.
func TestGoAPI(t *testing.T) {
	b := New(t)
	prog := b.goProgram(OpenMPI, "./test/programs/goapi")
	for _, level := range []string{"serialized", "funneled", "multiple"} {
		for _, n := range [][2]int{{1, 1}, {2, 1}} {
			b.Differential(OpenMPI, []Cluster{A(n[0], OpenMPI), B(n[1], OpenMPI)}, nil, prog, level)
		}
	}
	b.goProgram(MPICH, "./test/programs/goapi")
	mixed := filepath.Join(b.Root, "build", "e2e", "{mpi}", "goapi")
	native := b.OK(b.Native(OpenMPI, 3, prog, "serialized"))
	b.Same(native, b.OK(b.Native(MPICH, 3, filepath.Join(b.Root, "build", "e2e", MPICH, "goapi"), "serialized")), nil)
	b.Same(native, b.OK(b.Zipped(Job{Clusters: []Cluster{A(2, OpenMPI), B(1, MPICH)}}, mixed, "serialized")), nil)
}

func TestGoExample(t *testing.T) {
	b := New(t)
	r := b.OK(b.Zipped(Job{Clusters: []Cluster{A(2, OpenMPI), B(2, OpenMPI)}},
		b.goProgram(OpenMPI, "./examples/ring")))
	if !strings.Contains(r.Stdout, "passed 4 processes and came back as 6") {
		t.Error(r)
	}
}

// TestGoDocExamples runs the examples of the package's documentation natively and over clusters.
func TestGoDocExamples(t *testing.T) {
	b := New(t)
	prog := b.goBuild(OpenMPI, "./mmpi", "test", "-c")
	for _, r := range []Result{
		b.OK(b.Native(OpenMPI, 2, prog, "-test.v")),
		b.OK(b.Zipped(Job{Clusters: []Cluster{A(2, OpenMPI), B(1, OpenMPI)}}, prog, "-test.v")),
	} {
		if !strings.Contains(r.Stdout, "PASS: ExampleIsend") {
			t.Errorf("ran no examples:\n%v", r)
		}
	}
}

// TestNPB checks that every NAS kernel verifies its result natively, over clusters, and with both
// MPI libraries in one job.
func TestNPB(t *testing.T) {
	b := New(t)
	bench := filepath.Join(b.Root, "bin", "zipper-mpibench-{mpi}")
	for _, k := range []string{"ep", "is", "cg", "mg", "ft", "lu"} {
		for _, clusters := range [][]Cluster{{A(2, OpenMPI), B(2, OpenMPI)}, {A(1, OpenMPI), B(1, MPICH)}} {
			classes := []string{"S"}
			if long() {
				classes = []string{"S", "W"}
			}
			for _, class := range classes {
				r := b.OK(b.Zipped(Job{Clusters: clusters}, bench, "npb", "--format", "json", k, class))
				var res npb.Result
				if err := json.Unmarshal([]byte(r.Stdout), &res); err != nil || !res.Verified ||
					res.Ranks != clusters[0].Ranks+clusters[1].Ranks {
					t.Errorf("%v: %s", err, r)
				}
			}
		}
	}
}

// TestOSU checks that every OSU-style benchmark runs over clusters and prints a figure for every
// size.
func TestOSU(t *testing.T) {
	b := New(t)
	bench := filepath.Join(b.Root, "bin", "zipper-mpibench-{mpi}")
	names := []string{"latency", "bw", "bibw", "mbw_mr", "multi_lat", "barrier", "bcast", "reduce", "allreduce",
		"alltoall", "alltoallv", "gather", "scatter", "allgather", "allgatherv",
		"ibarrier", "ibcast", "ireduce", "iallreduce", "ialltoall", "ialltoallv", "igather", "iscatter", "iallgather",
		"iallgatherv"}
	args := append([]string{bench, "osu", "--format", "json", "--min", "4", "--max", "512", "--window", "8", "--reps",
		"2", "--rep-seconds", "0.001"}, names...)
	r := b.OK(b.Zipped(Job{Clusters: []Cluster{A(2, OpenMPI), B(2, OpenMPI)}}, args...))
	lines := strings.Split(strings.TrimSpace(r.Stdout), "\n")
	if len(lines) != len(names) {
		t.Fatalf("%d results for %d benchmarks\n%s", len(lines), len(names), r)
	}
	for i, l := range lines {
		var res osu.Result
		if err := json.Unmarshal([]byte(l), &res); err != nil || res.Name != names[i] || res.Ranks != 4 {
			t.Fatalf("%v: %s", err, l)
		}
		want := 8 // 4 … 512
		if strings.HasSuffix(res.Name, "barrier") {
			want = 1
		}
		if len(res.Rows) != want {
			t.Errorf("%s: %d sizes, want %d", res.Name, len(res.Rows), want)
		}
		for _, row := range res.Rows {
			if row.Value.Median <= 0 || row.Value.N != 2 {
				t.Errorf("%s of %d: %+v", res.Name, row.Size, row.Value)
			}
		}
	}
	b.Fails(b.Zipped(Job{Clusters: []Cluster{A(1, OpenMPI), B(1, OpenMPI)}}, bench, "osu", "nonsense"), 1,
		"no benchmark")
}

// TestBenchNet checks that every Netgauge-style pattern runs over the MPI modules on the zipped
// path, and that an impossible pair is refused with the reason.
func TestBenchNet(t *testing.T) {
	b := New(t)
	for _, pattern := range []string{"one_to_one", "one_to_n", "n_to_one", "ping_ping", "overlap", "loggp", "plogp"} {
		r := b.OK(b.Run(nil, nil, b.Zipper, "bench", "net", "--json", "--reps", "2", "--cluster", "a=1", "--cluster",
			"b=1", pattern, "mpi_nb"))
		var report struct {
			Ranks   int
			Rows    [][]float64
			Columns []string
		}
		if err := json.Unmarshal([]byte(r.Stdout), &report); err != nil || report.Ranks != 2 || len(report.Rows) == 0 ||
			len(report.Rows[0]) != len(report.Columns) {
			t.Errorf("%s: %v:\n%v", pattern, err, r)
		}
	}
	for _, module := range []string{"mpi", "mpi_put"} {
		b.OK(b.Run(nil, nil, b.Zipper, "bench", "net", "--reps", "2", "--cluster", "a=2", "--cluster", "b=1",
			"one_to_n", module))
	}
	if r := b.Run(nil, nil, b.Zipper, "bench", "net", "overlap", "mpi"); r.Status == 0 ||
		!strings.Contains(r.Stderr, "needs nonblocking operations") {
		t.Error(r)
	}
}

// TestBenchNetPut checks that one-sided puts with a flag carry the patterns natively and over
// clusters, and that patterns which need nonblocking operations are refused.
func TestBenchNetPut(t *testing.T) {
	b := New(t)
	for _, mode := range []string{"native", "zipped"} {
		for _, pattern := range []string{"one_to_one", "n_to_one", "loggp", "plogp"} {
			r := b.OK(b.Run(nil, nil, b.Zipper, "bench", "net", "--json", "--reps", "2", "--mode", mode, pattern,
				"mpi_put"))
			var report struct{ Rows [][]float64 }
			if err := json.Unmarshal([]byte(r.Stdout), &report); err != nil || len(report.Rows) < 21 { // 1 B … 1 MiB
				t.Errorf("%s %s: %v:\n%v", mode, pattern, err, r)
			}
		}
	}
	if r := b.Run(nil, nil, b.Zipper, "bench", "net", "ping_ping", "mpi_put"); r.Status == 0 ||
		!strings.Contains(r.Stderr, "needs nonblocking operations") {
		t.Error(r)
	}
}

// TestNPBMatrix checks that the matrix has the traffic between clusters that the forwarder has
// counted.
func TestNPBMatrix(t *testing.T) {
	b := New(t)
	r := b.OK(b.Run(nil, nil, b.Zipper, "bench", "npb", "--matrix", "--format", "json", "--cluster", "a=2", "--cluster",
		"b=2", "cg", "S"))
	var out struct {
		Result  struct{ Verified bool }
		Traffic []struct{ Bytes int64 }
		Matrix  [][]int64
	}
	if err := json.Unmarshal([]byte(r.Stdout), &out); err != nil || !out.Result.Verified || len(out.Matrix) != 4 ||
		len(out.Traffic) != 2 {
		t.Fatalf("%v:\n%v", err, r)
	}
	var crossed, counted int64
	for from, row := range out.Matrix {
		for to, n := range row {
			if from/2 != to/2 {
				crossed += n
			}
		}
	}
	for _, way := range out.Traffic {
		counted += way.Bytes
	}
	if crossed == 0 || crossed > counted || counted-crossed > counted/10 {
		t.Errorf("%d bytes crossed by the matrix, %d by the forwarder's counters", crossed, counted)
	}
}

// TestBenchScale measures on several numbers of ranks, natively and zipped in turn, and draws the
// result.
func TestBenchScale(t *testing.T) {
	b := New(t)
	picture := filepath.Join(t.TempDir(), "scale.svg")
	r := b.OK(b.Run(nil, nil, b.Zipper, "bench", "scale", "--ranks", "1,2", "--rounds", "2", "--reps", "2", "--size",
		"64", "--format", "csv", "--plot", picture, "allreduce"))
	var got []string
	for l := range strings.Lines(r.Stdout) {
		f := strings.Split(strings.TrimSpace(l), ",")
		if v, err := strconv.ParseFloat(f[len(f)-1], 64); err == nil && v > 0 {
			got = append(got, strings.Join(f[:len(f)-1], " "))
		}
	}
	want := []string{"2 zipped 0", "2 zipped 1", "2 native 0", "2 native 1", "4 zipped 0", "4 zipped 1", "4 native 0",
		"4 native 1"}
	for i, w := range want {
		want[i] = "allreduce us 64 " + w
	}
	if !slices.Equal(got, want) {
		t.Errorf("measured %q, want %q\n%v", got, want, r)
	}
	if svg, err := os.ReadFile(picture); err != nil || !strings.Contains(string(svg), "<svg") {
		t.Errorf("no picture: %v, %.100s", err, svg)
	}
	b.Fails(b.Run(nil, nil, b.Zipper, "bench", "scale", "--ranks", "0", "barrier"), 2,
		"--ranks 0: want numbers from 1 on")
	b.Fails(b.Run(nil, nil, b.Zipper, "bench", "scale", "--size", "3", "bcast"), 2, "power of two")
}
