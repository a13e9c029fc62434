package submit

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/leidenzipper/zipper/internal/optional"
	"github.com/leidenzipper/zipper/launch/spec"
)

// stages returns halves a and b, of which a's directory is the current one and b is on another
// host; the remote shell runs commands here, in a home of its own.
func stages(t *testing.T) (halves []*Half, remote string) {
	t.Helper()
	optional.Program(t, "rsync")
	dir := t.TempDir()
	remote = filepath.Join(dir, "b home")
	rsh := filepath.Join(dir, "rsh")
	for _, err := range []error{
		os.Mkdir(remote, 0o755), os.Mkdir(filepath.Join(dir, "here"), 0o755),
		// As ssh does, it has a shell split the words again.
		os.WriteFile(rsh, []byte("#!/bin/sh\nshift\nHOME='"+remote+"'; export HOME; cd; eval \"$*\"\n"), 0o755), //nolint:gosec // a script
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	t.Chdir(filepath.Join(dir, "here"))
	here, _ := os.Getwd()
	return []*Half{{Cluster: spec.Cluster{Name: "a", Dir: here}, shell: []string{"sh"}, system: slurm{}},
		{Cluster: spec.Cluster{Name: "b", Dir: "run 1"}, shell: []string{rsh, "head-b", "sh"}, system: slurm{}}}, remote
}

func write(t *testing.T, name, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func holds(t *testing.T, name, text string) {
	t.Helper()
	if got, err := os.ReadFile(name); err != nil || string(got) != text {
		t.Errorf("%s: %q, %v; want %q", name, got, err, text)
	}
}

// TestStage checks that inputs are copied to the cluster elsewhere and outputs back, and that
// nothing is copied where the directory is the current one.
func TestStage(t *testing.T) {
	halves, remote := stages(t)
	write(t, "in put", "1")
	write(t, "data/x", "2")
	s, err := NewStager(spec.Stage{In: []string{"in put", "data"}, Out: []string{"out/put", "log"}}, halves)
	if err != nil {
		t.Fatal(err)
	}
	there := filepath.Join(remote, "run 1")
	err = errors.Join(os.Chmod(".", 0o777), os.MkdirAll(there, 0o700), os.Chmod(there, 0o750))
	if err = errors.Join(err, s.In(t.Context())); err != nil {
		t.Fatal(err)
	}
	if i, err := os.Stat(there); err != nil || i.Mode().Perm() != 0o750 {
		t.Errorf("the directory at the cluster has another mode: %v, %v", i.Mode(), err)
	}
	holds(t, filepath.Join(remote, "run 1", "in put"), "1")
	holds(t, filepath.Join(remote, "run 1", "data", "x"), "2")
	write(t, "out/put", "a's")
	write(t, "log", "a's")
	write(t, filepath.Join(remote, "run 1", "out", "put"), "b's")
	write(t, filepath.Join(remote, "run 1", "log"), "b's")
	if err := s.Out(t.Context()); err != nil {
		t.Fatal(err)
	}
	holds(t, "b/out/put", "b's")
	holds(t, "b/log", "b's")
	if _, err := os.Stat("a"); err == nil {
		t.Error("outputs of the cluster here were copied")
	}
	if left, _ := filepath.Glob(".zipper*"); len(left) > 0 {
		t.Errorf("%v is left", left)
	}
}

// TestStageErrors checks that an error names the file.
func TestStageErrors(t *testing.T) {
	halves, _ := stages(t)
	if _, err := NewStager(spec.Stage{In: []string{"data/missing"}}, halves); err == nil ||
		!strings.Contains(err.Error(), "data/missing: no such file") {
		t.Error(err)
	}
	write(t, "in", "1")
	s, err := NewStager(spec.Stage{In: []string{"in"}, Out: []string{"missing"}}, halves)
	if err == nil {
		err = s.In(t.Context())
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Out(t.Context()); err == nil || !strings.Contains(err.Error(), "cluster b: stage: ") ||
		!strings.Contains(err.Error(), `missing"`) {
		t.Error(err)
	}
	halves[1].Cluster.Dir = "/proc/none"
	if err := s.In(t.Context()); err == nil || !strings.Contains(err.Error(), "directory /proc/none") {
		t.Error(err)
	}
}
