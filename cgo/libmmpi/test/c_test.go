// Package libmmpi runs the C library's unit tests (unit/, with the fake in fake/) as Go tests:
// built for each MPI library's header with the address and the undefined behaviour sanitizer.
package libmmpi

import (
	"bufio"
	"bytes"
	"cmp"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/leidenzipper/zipper/internal/optional"
)

const root = "../../.."

// TestUnits has one subtest for each MPI library, and in it one for each C test, named
// thing/behaviour.
func TestUnits(t *testing.T) {
	optional.Program(t, "make")
	sources(t)
	command(t, "go", "build", "-o", "build/gen", "./cgo/libmmpi/gen")
	for _, mpi := range []string{"openmpi", "mpich"} {
		t.Run(mpi, func(t *testing.T) {
			compiler := optional.Program(t, compiler(mpi))
			command(t, "make", "-s", "-j2", "-f", "cgo/libmmpi/test/Makefile", "MPI="+mpi, "MPICC="+compiler)
			run(t, mpi, "")
		})
	}
}

// TestLitmus runs the litmus tests alone, a hundred times as long with ZIPPER_LONG=1. The library
// with which they are built does not matter.
func TestLitmus(t *testing.T) {
	optional.Program(t, "make")
	sources(t)
	command(t, "go", "build", "-o", "build/gen", "./cgo/libmmpi/gen")
	compiler := optional.Program(t, compiler("openmpi"))
	command(t, "make", "-s", "-j2", "-f", "cgo/libmmpi/test/Makefile", "MPI=openmpi", "MPICC="+compiler)
	var env []string
	if os.Getenv("ZIPPER_LONG") != "" {
		env = append(env, "LITMUS_ROUNDS=100")
	}
	run(t, "openmpi", "litmus", env...)
}

// run runs those tests for an MPI library whose names contain a word, or all if it is empty.
func run(t *testing.T, mpi, word string, env ...string) {
	t.Helper()
	if arch := os.Getenv(optional.EmulatedVariable); arch != "" {
		t.Logf("without LeakSanitizer, which needs ptrace: user emulation of %s lacks that", arch)
		env = append(env, "ASAN_OPTIONS=detect_leaks=0")
	}
	units := exec.Command("build/units/" + mpi + "/units")
	if word != "" {
		units.Args = append(units.Args, word)
	}
	units.Dir, units.Env = root, append(os.Environ(), env...)
	// a sanitizer's report comes on standard error, before its test's line
	out, err := units.CombinedOutput()
	report(t, out, err)
}

// report makes a subtest of each line of TAP; the lines before a failed one are its reason. The
// plan, which is printed first whether or not the tests run to the end, states the number of tests.
func report(t *testing.T, out []byte, ended error) {
	var why strings.Builder
	planned, ran, failed := "", 0, 0
	for lines := bufio.NewScanner(bytes.NewReader(out)); lines.Scan(); {
		line := lines.Text()
		result, name, ok := strings.Cut(line, " - ")
		switch {
		case planned == "" && strings.HasPrefix(line, "1.."):
			planned = line
		case ok && (strings.HasPrefix(result, "ok ") || strings.HasPrefix(result, "not ok ")):
			ran++
			name, skipped := strings.CutSuffix(name, " # SKIP")
			t.Run(strings.Replace(name, " ", "/", 1), func(t *testing.T) {
				if strings.HasPrefix(result, "not ") {
					failed++
					t.Error(why.String())
				} else if skipped {
					t.Skip(strings.TrimPrefix(strings.TrimSpace(why.String()), "# "))
				}
			})
			why.Reset()
		default:
			why.WriteString(line + "\n")
		}
	}
	t.Logf("%d tests in C", ran)
	if planned != fmt.Sprintf("1..%d", ran) || ran == 0 {
		t.Errorf("planned %q, but %d have run (%v):\n%s", planned, ran, ended, why.String())
	} else if (ended != nil) != (failed > 0) {
		t.Errorf("%d have failed, but the program says %v:\n%s", failed, ended, why.String())
	}
}

// compiler returns the name of the compiler that scripts/build uses for an MPI library: the value
// of the variable, or Debian's name.
func compiler(mpi string) string {
	return cmp.Or(os.Getenv("MPICC_"+strings.ToUpper(mpi)), "mpicc."+mpi)
}

func command(t *testing.T, argv ...string) {
	t.Helper()
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Dir = root
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", cmd, err, out)
	} else if len(out) > 0 {
		t.Logf("%s", out)
	}
}

// sources reads the state of every file from which the units are made, so that go test does not
// reuse an old result after one has changed: it records the files that a test itself looks at, but
// not those of make.
func sources(t *testing.T) {
	for _, dir := range []string{"..", "../../abi"} {
		err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
			if err == nil && !d.IsDir() {
				_, err = os.Stat(path)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}
