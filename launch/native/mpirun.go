// Package native knows the MPI libraries of clusters: their launchers and compilers, their
// settings, and how one of their processes becomes the program with libmmpi in front of its MPI.
package native

import (
	"context"
	"fmt"
	"os/exec"
	"strconv"
	"strings"

	"github.com/leidenzipper/zipper/launch/spec"
)

// launchers are the usual names of each library's mpirun, the most specific first.
var launchers = map[spec.MPI][]string{
	spec.OpenMPI: {"mpirun.openmpi", "mpirun", "mpiexec", "orterun"},
	spec.MPICH:   {"mpirun.mpich", "mpiexec.hydra", "mpiexec.mpich", "mpirun", "mpiexec"},
}

var packages = map[spec.MPI]string{spec.OpenMPI: "openmpi-bin libopenmpi-dev", spec.MPICH: "mpich libmpich-dev"}

// FindMpirun finds the launcher of an MPI library on PATH and asks each candidate which MPI it is,
// and its version.
func FindMpirun(ctx context.Context, m spec.MPI) (path, version string, err error) {
	for _, name := range launchers[m] {
		p, err := exec.LookPath(name)
		if err != nil {
			continue
		}
		if got, version := IdentifyMpirun(ctx, p); got == m {
			return p, version, nil
		}
	}
	return "", "", fmt.Errorf("%s is not installed here: no mpirun of it on PATH; load its module, install it (on Debian: apt-get install %s), or name it in the job file (mpirun: PATH)",
		m, packages[m])
}

// IdentifyMpirun asks an mpirun which library it belongs to and its version.
func IdentifyMpirun(ctx context.Context, path string) (m spec.MPI, version string) {
	ctx, cancel := context.WithTimeout(ctx, versionTime)
	defer cancel()
	out, _ := exec.CommandContext(ctx, path, "--version").CombinedOutput()
	text := string(out)
	first, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	switch {
	case strings.Contains(text, "Open MPI"), strings.Contains(text, "OpenRTE"):
		f := strings.Fields(first)
		return spec.OpenMPI, f[len(f)-1]
	case strings.Contains(text, "HYDRA"):
		for _, line := range strings.Split(text, "\n") {
			if k, v, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(k) == "Version" {
				return spec.MPICH, strings.TrimSpace(v)
			}
		}
		return spec.MPICH, "unknown version"
	}
	return "", first
}

// ByPRRTE tells whether the launcher is PRRTE, that of Open MPI since version 5: some of its
// settings have other names.
func ByPRRTE(m spec.MPI, version string) bool {
	major, _, _ := strings.Cut(version, ".")
	n, _ := strconv.Atoi(major)
	return m == spec.OpenMPI && n >= 5
}
