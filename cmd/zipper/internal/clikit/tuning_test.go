package clikit

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/leidenzipper/zipper/collectives"
	"github.com/leidenzipper/zipper/internal/jobenv"
)

// TestTuningIsOneLineForProcesses checks that processes get the whole table in one line, from any
// source, so that it is equal in all clusters.
func TestTuningIsOneLineForProcesses(t *testing.T) {
	file := filepath.Join(t.TempDir(), "table")
	want := collectives.Tuning{Chunk: 8 << 10, Leaders: 2}
	if err := os.WriteFile(file, []byte(want.Table("measured\n")), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ file, environment, want, err string }{
		{"", "", "", ""},
		{file, "", want.String(), ""},
		{"", "leaders=2, chunk=8K", want.String(), ""},
		{"", "chunk=8K # measured\nleaders=2\n", want.String(), ""},
		{file, "leaders=2", "", "leave one out"},
		{file + "x", "", "", "no such file"},
		{"", "leader=2", "", "no such setting"},
	} {
		t.Setenv(jobenv.VarCollectives, c.environment)
		got, err := tuning(c.file)
		if c.err == "" && (err != nil || got != c.want) {
			t.Errorf("%+v: %q, %v", c, got, err)
		}
		if c.err != "" && (err == nil || !strings.Contains(err.Error(), c.err)) {
			t.Errorf("%+v: %v", c, err)
		}
	}
}
