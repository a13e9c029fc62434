package native

import (
	"encoding/binary"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/leidenzipper/zipper/internal/jobenv"
	"github.com/leidenzipper/zipper/internal/wire"
	"github.com/leidenzipper/zipper/launch/spec"
)

// TestProgramOfAnotherArchitectureIsRefused checks that a program for another processor is named
// with its architecture and is not run: under an emulator it would run without MMPI.
func TestProgramOfAnotherArchitectureIsRefused(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(self)
	if err != nil {
		t.Fatal(err)
	}
	const machine = 18 // the offset of e_machine in an ELF file
	share := jobenv.Job{ID: "j", Secret: "s", Cluster: "a", Layout: []jobenv.Cluster{{Name: "a", Size: 1}}}
	for arch, number := range map[string]uint16{"x86_64": 62, "aarch64": 183} {
		binary.LittleEndian.PutUint16(b[machine:], number)
		file := filepath.Join(t.TempDir(), "prog")
		if err := os.WriteFile(file, b, 0o700); err != nil {
			t.Fatal(err)
		}
		p, err := InspectProgram(file, "")
		if err != nil || p.Arch != arch {
			t.Errorf("%s: %+v, %v", arch, p, err)
		}
		_, _, err = ExecRequest{Share: share, Program: []string{file}, MPI: spec.MPICH}.Plan([]string{"PATH=/bin"})
		refused := err != nil && strings.Contains(err.Error(), "is built for "+arch+", and this host is ")
		if refused != (arch != wire.Architecture()) {
			t.Errorf("%s: %v", arch, err)
		}
	}
}
