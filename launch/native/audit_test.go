package native

import (
	"path/filepath"
	"testing"

	"github.com/leidenzipper/zipper/internal/optional"
	"github.com/leidenzipper/zipper/launch/spec"
)

func TestOnlyUnlinkedProgramsAreAudited(t *testing.T) {
	dir := t.TempDir()
	if auditable(filepath.Join(dir, "nowhere")) || auditable("/etc/passwd") {
		t.Error("a file that is not a program can be audited")
	}
	for _, p := range []Program{{MPI: spec.OpenMPI}, {ABI: true}, {MMPI: true, MPI: spec.MPICH}} {
		if lib, err := p.audited(); lib != "" || err != nil { // a program that preloading reaches
			t.Errorf("%+v: %q, %v", p, lib, err)
		}
	}
	cc := optional.Program(t, "cc")
	lib := filepath.Join(dir, "libf.so")
	sharedObject(t, cc, lib, "libf.so", "f")
	if defines(lib, "GLIBC_2.35") {
		t.Error("libf.so defines GLIBC_2.35")
	}
}
