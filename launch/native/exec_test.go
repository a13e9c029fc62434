package native

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/leidenzipper/zipper/internal/jobenv"
	"github.com/leidenzipper/zipper/launch/spec"
)

func TestPlanOfExec(t *testing.T) {
	dir := t.TempDir()
	script := filepath.Join(dir, "s")
	if err := os.WriteFile(script, []byte("#!/bin/sh\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	share := jobenv.Job{ID: "j", Secret: "s", Cluster: "a", Layout: []jobenv.Cluster{{Name: "a", Size: 1}},
		Timeout: time.Second}
	for word, r := range map[string]ExecRequest{
		"no program":     {Share: share},
		"does not exist": {Share: share, Program: []string{"./nowhere"}, Dir: dir},
		"not on PATH":    {Share: share, Program: []string{"no-such-program-anywhere"}},
		"cannot tell":    {Share: share, Program: []string{script}},
		"directory":      {Share: share, Program: []string{dir}},
		"libmmpi":        {Share: share, Program: []string{script}, MPI: spec.OpenMPI},
	} {
		if _, _, err := r.Plan([]string{"PATH=/bin"}); err == nil || !strings.Contains(err.Error(), word) {
			t.Errorf("want an error with %q, got %v", word, err)
		}
	}
}
