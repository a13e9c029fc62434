package launch

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/leidenzipper/zipper/internal/wire"
)

// TestPathOfZipperNamesTheHostsArchitecture checks that the shell of another host replaces {arch}
// in the path of the zipper command there, and nothing else.
func TestPathOfZipperNamesTheHostsArchitecture(t *testing.T) {
	for path, want := range map[string]string{
		"/usr/bin/zipper":           "/usr/bin/zipper",
		"/opt/{arch}/zipper":        "/opt/" + wire.Architecture() + "/zipper",
		"/a b/$HOME/{arch}'/{mpi}x": "/a b/$HOME/" + wire.Architecture() + "'/{mpi}x",
	} {
		out, err := exec.Command("sh", "-c", "printf %s "+ShellPath(path)).Output()
		if err != nil || string(out) != want {
			t.Errorf("%s: %q, %v", ShellPath(path), out, err)
		}
	}
	if got := ShellPath("/usr/bin/zipper"); strings.ContainsAny(got, "'$") {
		t.Errorf("%s", got)
	}
}
