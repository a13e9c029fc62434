package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// armPrograms are programs with arguments for jobs of aarch64 alone. They are few, because a job
// takes ten times as long under emulation.
var armPrograms = []program{
	{file: "c/p2p_wildcard.c"},
	{file: "c/coll_basic.c"},
	{file: "c/random.c", args: []string{"5", "60"}},
}

// mixedPrograms are programs with arguments for jobs of x86-64 and aarch64 together. They have
// every kind of communication of long doubles, the refused calls, every operator, windows with
// every type, persistent operations, random ones, and Fortran's logical values.
var mixedPrograms = []program{
	{file: "c/long_double.c"},
	{file: "c/two_formats.c", args: []string{"build/e2e/shared/file"}},
	{file: "c/coll_ops.c"},
	{file: "c/rma_types.c"},
	{file: "c/persistent.c"},
	{file: "c/random.c", args: []string{"6", "60"}},
	{file: "fortran/logical.f90"},
}

// armSystem is the system of scripts/system --unpacked, which zipper run enters by a remote shell;
// the launchers, libraries and programs of a cluster there are those of that system.
type armSystem struct {
	bed *Bed
	// path is the directory of the system, and rsh the remote shell.
	path, rsh string
	// here is the working directory of the clusters of x86-64.
	here string
}

// armDir is the working directory of the clusters of aarch64, in their system.
const armDir = "/root/zipper"

// newArmSystem makes the remote shell, and the working directory of the clusters of x86-64.
// build/e2e/shared below the working directories is one directory.
func newArmSystem(b *Bed) *armSystem {
	b.T.Helper()
	s := &armSystem{bed: b, path: os.Getenv("SYSTEM"), rsh: filepath.Join(b.T.TempDir(), "rsh"), here: b.T.TempDir()}
	if s.path == "" || os.Getenv("ARCH") != "arm64" {
		b.T.Skip("needs the system that scripts/test arm64 makes")
	}
	script := fmt.Sprintf("#!/bin/sh\nshift\nexec '%s/scripts/system' --enter sh -c \"$*\"\n", b.Root)
	if err := os.WriteFile(s.rsh, []byte(script), 0o700); err != nil {
		b.T.Fatal(err)
	}
	shared := filepath.Join(s.path, armDir, "build/e2e/shared")
	b.OK(b.Run(nil, nil, "mkdir", "-p", shared, filepath.Join(s.here, "build/e2e")))
	b.OK(b.Run(nil, nil, "ln", "-s", shared, filepath.Join(s.here, "build/e2e/shared")))
	return s
}

// name returns the program's path in the working directories, as users write it.
func (s *armSystem) name(p program) string { return "build/e2e/" + p.title() + ".{mpi}.{arch}" }

// compile compiles a program for both libraries and, if here, for x86-64 too.
func (s *armSystem) compile(p program, here bool) {
	b := s.bed
	b.T.Helper()
	for _, mpi := range []string{OpenMPI, MPICH} {
		name := strings.ReplaceAll(s.name(p), "{mpi}", mpi)
		compiler := "mpicc."
		if strings.HasSuffix(p.file, ".f90") {
			compiler = "mpifort."
		}
		b.OK(b.Run(nil, nil, s.rsh, "arm", compiler+mpi+" -O1 -o "+strings.ReplaceAll(name, "{arch}", "aarch64")+" test/programs/"+p.file+" -lm"))
		if here {
			b.OK(b.Run(nil, nil, "cp", b.Compile(mpi, "test/programs/"+p.file), filepath.Join(s.here, strings.ReplaceAll(name, "{arch}", "x86_64"))))
		}
	}
}

// arm and x86 return the entry of a job file for a cluster of that architecture.
func (s *armSystem) arm(name, mpi string, ranks int) string {
	return fmt.Sprintf("  - {name: %s, ranks: %d, mpi: %s, launcher: ssh, login: localhost, dir: %s, zipper: %[4]s/bin/zipper}\n",
		name, ranks, mpi, armDir)
}

func (s *armSystem) x86(name, mpi string, ranks int) string {
	return fmt.Sprintf("  - {name: %s, ranks: %d, mpi: %s, dir: %s}\n", name, ranks, mpi, s.here)
}

// job returns the path of a job file with clusters.
func (s *armSystem) job(clusters ...string) string {
	s.bed.T.Helper()
	file := filepath.Join(s.bed.T.TempDir(), "job.yaml")
	text := "rsh: [" + s.rsh + "]\ntimeout: 90s\nclusters:\n" + strings.Join(clusters, "")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		s.bed.T.Fatal(err)
	}
	return file
}

// same runs a program over a job's clusters and compares its output with that of native ranks of
// x86-64.
func (s *armSystem) same(p program, job string, ranks int) {
	b := s.bed
	b.T.Helper()
	args := p.args
	if len(args) > 0 && strings.HasPrefix(args[0], "build/") { // a file, which may be anywhere
		args = []string{filepath.Join(b.T.TempDir(), "file")}
	}
	native := b.OK(b.Native(OpenMPI, ranks, append([]string{b.Compile(OpenMPI, "test/programs/"+p.file)}, args...)...))
	words := append([]string{b.Zipper, "run", "--file", job, "--", s.name(p)}, p.args...)
	b.Same(native, b.OK(b.Run(nil, nil, words...)), nil)
}

// TestArm64 runs programs in clusters of aarch64.
func TestArm64(t *testing.T) {
	s := newArmSystem(New(t))
	b := s.bed
	all := s.job(s.arm("a", OpenMPI, 1), s.arm("b", MPICH, 1))
	for _, p := range armPrograms {
		s.compile(p, false)
		t.Run(p.title(), func(t *testing.T) {
			b.T = t
			s.same(p, all, 2)
		})
		b.T = t
	}
	t.Run("a program of another architecture", func(t *testing.T) {
		b.T = t
		prog := b.Compile(OpenMPI, "test/programs/c/nothing.c")
		b.OK(b.Run(nil, nil, "cp", prog, filepath.Join(s.path, armDir, "build/e2e/nothing.x86_64")))
		r := b.Run(nil, nil, b.Zipper, "run", "--file", all, "--", "build/e2e/nothing.x86_64")
		if r.Status == 0 || !strings.Contains(r.Stderr, "is built for x86_64, and this host is aarch64") {
			t.Errorf("status %d: %s", r.Status, r.Stderr)
		}
	})
}

// TestArm64Mixed runs programs in jobs of x86-64 and aarch64 together, with each library on either
// side, and either side first.
func TestArm64Mixed(t *testing.T) {
	s := newArmSystem(New(t))
	b := s.bed
	jobs := map[string]string{
		"x86-64 Open MPI, aarch64 MPICH": s.job(s.x86("a", OpenMPI, 2), s.arm("b", MPICH, 1)),
		"aarch64 Open MPI, x86-64 MPICH": s.job(s.arm("a", OpenMPI, 1), s.x86("b", MPICH, 2)),
	}
	for _, p := range mixedPrograms {
		s.compile(p, true)
		for name, job := range jobs {
			t.Run(p.title()+"/"+name, func(t *testing.T) {
				b.T = t
				s.same(p, job, 3)
			})
			b.T = t
		}
	}
	t.Run("partitioned", func(t *testing.T) { // both libraries must be MPICH
		b.T = t
		s.same(mixedPrograms[0], s.job(s.x86("a", MPICH, 1), s.arm("b", MPICH, 1)), 2)
	})
	t.Run("doctor", func(t *testing.T) {
		b.T = t
		for _, job := range jobs {
			r := b.Run(nil, nil, b.Zipper, "doctor", "--file", job)
			if strings.Count(r.Stdout, "architecture aarch64") != 1 || strings.Count(r.Stdout, "architecture x86_64") != 1 {
				t.Errorf("%s%s", r.Stdout, r.Stderr)
			}
		}
	})
}
