package e2e

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// hpccinf is a small input for hpcc on a process grid of 1 × ranks.
const hpccinf = `HPLinpack benchmark input file
Innovative Computing Laboratory, University of Tennessee
HPL.out      output file name (if any)
8            device out (6=stdout,7=stderr,file)
1            # of problems sizes (N)
160          Ns
1            # of NBs
32           NBs
0            PMAP process mapping (0=Row-,1=Column-major)
1            # of process grids (P x Q)
1            Ps
%d           Qs
16.0         threshold
1            # of panel fact
2            PFACTs (0=left, 1=Crout, 2=Right)
1            # of recursive stopping criterium
4            NBMINs (>= 1)
1            # of panels in recursion
2            NDIVs
1            # of recursive panel fact.
1            RFACTs (0=left, 1=Crout, 2=Right)
1            # of broadcast
1            BCASTs (0=1rg,1=1rM,2=2rg,3=2rM,4=Lng,5=LnM)
1            # of lookahead depth
1            DEPTHs (>=0)
2            SWAP (0=bin-exch,1=long,2=mix)
64           swapping threshold
0            L1 in (0=transposed,1=no-transposed) form
0            U  in (0=transposed,1=no-transposed) form
1            Equilibration (0=no,1=yes)
8            memory alignment in double (> 0)
##### This line (no. 32) is ignored (it serves as a separator). ######
0            Number of additional problem sizes for PTRANS
1200         values of N
0            number of additional blocking sizes for PTRANS
40           values of NB
`

var (
	hpccFailed    = regexp.MustCompile(`(?m)^.*tests completed and failed residual checks.*$`)
	hpccErrors    = regexp.MustCompile(`(?m)^(\w+_Errors)=(.*)$`)
	hpccLocations = regexp.MustCompile(`(?m)^Found (\d+) errors in \d+ locations.*$`)
)

// hpccProblems lists the problems in hpcc's report.
func hpccProblems(report string) []string {
	var bad []string
	if !regexp.MustCompile(`(?m)^Success=1$`).MatchString(report) {
		bad = append(bad, "no Success=1")
	}
	if n := strings.Count(report, "FAILED"); n > 0 {
		bad = append(bad, fmt.Sprintf("%d times FAILED", n))
	}
	sums := hpccFailed.FindAllString(report, -1)
	if len(sums) != 2 { // PTRANS and HPL
		bad = append(bad, fmt.Sprintf("%d counts of failed residual checks, want 2", len(sums)))
	}
	for _, l := range sums {
		if !strings.HasPrefix(strings.TrimSpace(l), "0 ") {
			bad = append(bad, l)
		}
	}
	errors := hpccErrors.FindAllStringSubmatch(report, -1)
	if len(errors) < 2 {
		bad = append(bad, fmt.Sprintf("%d counts of errors, want at least 2", len(errors)))
	}
	for _, m := range errors {
		if m[2] != "0" {
			bad = append(bad, m[0])
		}
	}
	locations := hpccLocations.FindAllStringSubmatch(report, -1)
	// MPIRandomAccess and SingleRandomAccess, each with two generators of random numbers
	if len(locations) != 4 {
		bad = append(bad, fmt.Sprintf("%d counts of wrong locations, want 4", len(locations)))
	}
	for _, m := range locations {
		if m[1] != "0" {
			bad = append(bad, m[0])
		}
	}
	return bad
}

// TestHPCC runs Debian's HPC Challenge unmodified; all its verifications must pass.
func TestHPCC(t *testing.T) {
	New(t)
	short := []split{oneOne, twoTwo}
	overSplits(t, "", byLength(short, append(short, twoOne, oneOneOne, oneThree, threeFour)), func(b *Bed, s split) {
		t := b.T
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "hpccinf.txt"), fmt.Appendf(nil, hpccinf, s.ranks()),
			0o644); err != nil {
			t.Fatal(err)
		}
		var clusters []Cluster
		for _, c := range s.clusters {
			c.Dir = dir
			clusters = append(clusters, c)
		}
		argv := []string{"hpcc"}
		if s.ranks() > 4 {
			// On more ranks MPIRandomAccess discards updates under any MPI, natively too;
			// hpcc_order.c explains and prevents it.
			tool := b.Compile(OpenMPI, "test/programs/c/hpcc_order.c", "-shared", "-fPIC")
			argv = []string{"env", "LD_PRELOAD=" + tool + ":" + filepath.Join(b.Root, "lib", "libmmpi-openmpi.so"),
				"hpcc"}
		}
		r := b.OK(b.Zipped(Job{Clusters: clusters}, argv...))
		report, err := os.ReadFile(filepath.Join(dir, "hpccoutf.txt"))
		if err != nil {
			t.Fatalf("%v\n%v", err, r)
		}
		if bad := hpccProblems(string(report)); len(bad) > 0 {
			t.Errorf("%s\n%s", strings.Join(bad, "\n"), report)
		}
	})
}

// TestNetPIPE runs Debian's NetPIPE: its Open MPI build in one cluster, its MPICH build in the
// other, one job.
func TestNetPIPE(t *testing.T) {
	b := New(t)
	out := filepath.Join(t.TempDir(), "netpipe.out")
	const upper = 65536
	clusters := []Cluster{A(1, OpenMPI), B(1, MPICH)}
	clusters[0].Program, clusters[1].Program = "NPopenmpi", "NPmpich2"
	r := b.OK(b.Zipped(Job{Clusters: clusters}, "NetPIPE", "-u", fmt.Sprint(upper), "-n", "10", "-o", out))
	text, err := os.ReadFile(out)
	if err != nil {
		t.Fatalf("%v\n%v", err, r)
	}
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	if len(lines) < 50 {
		t.Errorf("%d sizes measured, want at least 50", len(lines))
	}
	var size int
	var mbits, seconds float64
	last := lines[len(lines)-1]
	if _, err := fmt.Sscan(last, &size, &mbits, &seconds); err != nil {
		t.Fatalf("last line %q: %v\n%v", last, err, r)
	}
	// Its Mbit/s are of 2²⁰ bits; both figures are of the same measurement, printed with six digits
	// or more.
	if want := float64(size) * 8 / seconds / (1 << 20); size < upper || !(seconds > 0) ||
		math.Abs(mbits-want) > 0.01*want {
		t.Errorf("last line %q: want a size of at least %d and %.3f Mbit/s", last, upper, want)
	}
}

// melt is LAMMPS's Lennard-Jones melt: 4000 atoms, 100 steps.
const melt = `units lj
atom_style atomic
processors %d 1 1
lattice fcc 0.8442
region box block 0 10 0 10 0 10
create_box 1 box
create_atoms 1 box
mass 1 1.0
velocity all create 3.0 87287 loop geom
pair_style lj/cut 2.5
pair_coeff 1 1 1.0 1.0 2.5
neighbor 0.3 bin
neigh_modify every 20 delay 0 check no
fix 1 all nve
thermo 10
run 100
`

// thermo reads the table that LAMMPS prints.
func thermo(t *testing.T, r Result) [][]float64 {
	t.Helper()
	var rows [][]float64
	in := false
	for l := range strings.Lines(r.Stdout) {
		words := strings.Fields(l)
		switch {
		case len(words) > 0 && words[0] == "Step":
			in = true
			continue
		case strings.HasPrefix(l, "Loop time"):
			in = false
		}
		if !in {
			continue
		}
		var row []float64
		for _, w := range words {
			x, err := strconv.ParseFloat(w, 64)
			if err != nil {
				t.Fatalf("%q in the table: %v\n%v", w, err, r)
			}
			row = append(row, x)
		}
		rows = append(rows, row)
	}
	if len(rows) != 11 {
		t.Fatalf("%d rows in the table, want 11\n%v", len(rows), r)
	}
	return rows
}

// TestLAMMPS compares the thermodynamic output of a melt, same decomposition, with the native run,
// within 1e-6 relative.
func TestLAMMPS(t *testing.T) {
	New(t)
	if !long() {
		t.Skip("long test: scripts/test --long")
	}
	for _, s := range openMPIOnly {
		t.Run(s.name, func(t *testing.T) {
			b := New(t)
			in := filepath.Join(t.TempDir(), "melt.in")
			if err := os.WriteFile(in, fmt.Appendf(nil, melt, s.ranks()), 0o644); err != nil {
				t.Fatal(err)
			}
			argv := []string{"lmp", "-in", in, "-log", "none"}
			want := thermo(t, b.OK(b.Native(OpenMPI, s.ranks(), argv...)))
			got := thermo(t, b.OK(b.Zipped(Job{Clusters: s.clusters}, argv...)))
			for i, row := range want {
				if len(got[i]) != len(row) {
					t.Fatalf("row %d: %v, native %v", i, got[i], row)
				}
				for k, x := range row {
					if math.Abs(got[i][k]-x) > 1e-6*math.Abs(x) {
						t.Errorf("row %d, column %d: %v, native %v", i, k, got[i][k], x)
					}
				}
			}
		})
	}
}
