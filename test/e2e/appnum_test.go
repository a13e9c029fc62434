package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestAppnum checks that MPI_APPNUM distinguishes the programs of a job: with one program in each
// cluster, with builds of one program, and in three clusters with two programs, as natively if one
// mpirun starts both.
func TestAppnum(t *testing.T) {
	for _, pair := range [][2]string{{OpenMPI, OpenMPI}, {MPICH, MPICH}, {OpenMPI, MPICH}} {
		t.Run(pair[0]+" "+pair[1], func(t *testing.T) {
			b := New(t)
			dir := t.TempDir()
			named := func(name string, mpi string) string { // the program under another name
				to, source := filepath.Join(dir, name+"."+mpi), "test/programs/c/appnum.c"
				if name == "fortran" {
					source = "test/programs/fortran/appnum.f90"
				}
				text, err := os.ReadFile(b.Compile(mpi, source))
				if err == nil {
					err = os.WriteFile(to, text, 0o755) //nolint:gosec // a program
				}
				if err != nil {
					t.Fatal(err)
				}
				return to
			}
			job := func(programs ...string) string {
				var text strings.Builder
				text.WriteString("clusters:\n")
				for i, p := range programs {
					mpi := pair[i%2]
					words := strings.Fields(p)
					fmt.Fprintf(&text, "- {name: %c, ranks: 2, mpi: %s, program: [%s, %s]}\n", 'a'+i, mpi,
						named(words[0], mpi), `"`+words[1]+`"`)
				}
				file := filepath.Join(dir, fmt.Sprintf("job%d.yaml", len(text.String())))
				if err := os.WriteFile(file, []byte(text.String()), 0o600); err != nil {
					t.Fatal(err)
				}
				return file
			}
			for _, file := range []string{
				job("ocean 0", "atmosphere 1"),
				job("atmosphere 0", "atmosphere 0"),
				job("ocean 0", "atmosphere 1", "ocean 0"),
				job("fortran 0", "ocean 1"),
				job("ocean 0", "fortran 1"),
			} {
				b.OK(b.Start(nil, nil, b.Zipper, "run", "--file", file).Wait())
			}
			for _, mpi := range pair {
				path := named("ocean", mpi)
				b.OK(b.Native(mpi, 2, path, "0", ":", "-n", "2", path, "1"))
			}
		})
	}
}

// TestAppnumOfHalves checks that the attribute has no value in C and in Fortran, because each half
// knows its own program only, unless the user has set it.
func TestAppnumOfHalves(t *testing.T) {
	b := New(t)
	f := b.StartForwarder()
	inC, inFortran := b.Compile(OpenMPI, "test/programs/c/appnum.c"), b.Compile(OpenMPI, "test/programs/fortran/appnum.f90")
	one := half(b, "unsaid", "s", "a", "a=1,b=1", f.Addr, inC)
	two := half(b, "unsaid", "s", "b", "a=1,b=1", f.Addr, inC)
	b.OK(one.Wait())
	b.OK(two.Wait())
	one = half(b, "fortran", "s", "a", "a=1,b=1", f.Addr, inFortran, "-1")
	two = half(b, "fortran", "s", "b", "a=1,b=1", f.Addr, inFortran, "-1")
	b.OK(one.Wait())
	b.OK(two.Wait())
	t.Setenv("ZIPPER_APPNUM", "5")
	one = half(b, "said", "s", "a", "a=1,b=1", f.Addr, inC, "5")
	two = half(b, "said", "s", "b", "a=1,b=1", f.Addr, inC, "5")
	b.OK(one.Wait())
	b.OK(two.Wait())
}
