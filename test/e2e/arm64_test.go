package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// armPrograms are programs with arguments for jobs under emulation, which takes ten times as long.
var armPrograms = []program{
	{file: "c/p2p_wildcard.c"},
	{file: "c/coll_basic.c"},
	{file: "c/random.c", args: []string{"5", "60"}},
}

// TestArm64 runs programs in clusters of aarch64. They are in the system of scripts/system
// --unpacked, which zipper run enters by a remote shell; the launchers, libraries and programs of a
// cluster are those of its system.
func TestArm64(t *testing.T) {
	b := New(t)
	system := os.Getenv("SYSTEM")
	if system == "" || os.Getenv("ARCH") != "arm64" {
		t.Skip("needs the system that scripts/test arm64 makes")
	}
	rsh := filepath.Join(t.TempDir(), "rsh")
	script := fmt.Sprintf("#!/bin/sh\nshift\nexec '%s/scripts/system' --enter sh -c \"$*\"\n", b.Root)
	if err := os.WriteFile(rsh, []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, p := range armPrograms {
		for _, mpi := range []string{OpenMPI, MPICH} {
			b.OK(b.Run(nil, nil, rsh, "arm", "mkdir -p build/e2e && mpicc."+mpi+" -O1 -o build/e2e/"+p.title()+"."+mpi+
				".aarch64 test/programs/"+p.file+" -lm"))
		}
	}
	there := func(name, mpi string) string {
		return fmt.Sprintf("  - {name: %s, ranks: 1, mpi: %s, launcher: ssh, login: localhost, dir: /root/zipper, zipper: /root/zipper/bin/zipper}\n",
			name, mpi)
	}
	job := func(clusters ...string) string {
		file := filepath.Join(t.TempDir(), "job.yaml")
		text := "rsh: [" + rsh + "]\ntimeout: 90s\nclusters:\n" + strings.Join(clusters, "")
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return file
	}
	all := job(there("a", OpenMPI), there("b", MPICH))
	for _, p := range armPrograms {
		t.Run(p.title(), func(t *testing.T) {
			b.T = t
			native := b.OK(b.Native(OpenMPI, 2, append([]string{b.Compile(OpenMPI, "test/programs/"+p.file)}, p.args...)...))
			words := append([]string{b.Zipper, "run", "--file", all, "--", "build/e2e/" + p.title() + ".{mpi}.{arch}"},
				p.args...)
			b.Same(native, b.OK(b.Run(nil, nil, words...)), nil)
		})
	}
	t.Run("a program of another architecture", func(t *testing.T) {
		b.T = t
		prog := b.Compile(OpenMPI, "test/programs/c/nothing.c")
		here := filepath.Join(system, "root/zipper/build/e2e/nothing.x86_64")
		b.OK(b.Run(nil, nil, "cp", prog, here))
		r := b.Run(nil, nil, b.Zipper, "run", "--file", all, "--", "build/e2e/nothing.x86_64")
		if r.Status == 0 || !strings.Contains(r.Stderr, "is built for x86_64, and this host is aarch64") {
			t.Errorf("status %d: %s", r.Status, r.Stderr)
		}
	})
	t.Run("doctor", func(t *testing.T) {
		b.T = t
		r := b.Run(nil, nil, b.Zipper, "doctor", "--file", all)
		if strings.Count(r.Stdout, "architecture aarch64") != 2 {
			t.Errorf("%s%s", r.Stdout, r.Stderr)
		}
	})
}
