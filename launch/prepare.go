package launch

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/leidenzipper/zipper/launch/native"
	"github.com/leidenzipper/zipper/launch/spec"
)

// Prepare makes the checks that are possible before anything is started, and finds the MPI library
// and its launcher. The error says what to do.
func (h *Half) Prepare(ctx context.Context) error {
	if err := h.prepare(ctx); err != nil {
		return fmt.Errorf("cluster %s: %w", h.Cluster.Name, err)
	}
	return nil
}

func (h *Half) prepare(ctx context.Context) error {
	c := &h.Cluster
	if c.Mpirun != "" {
		if _, err := exec.LookPath(c.Mpirun); err != nil {
			return fmt.Errorf("mpirun: %w", err)
		}
		m, version := native.IdentifyMpirun(ctx, c.Mpirun)
		if c.MPI == "" {
			c.MPI = m
		}
		if c.MPI == "" {
			return fmt.Errorf("cannot tell which MPI library %s belongs to: say mpi=openmpi or mpi=mpich", c.Mpirun)
		}
		h.prrte = native.ByPRRTE(m, version)
	}
	if c.MPI == "" && c.NamesMPI() {
		if err := h.findMPI(ctx); err != nil {
			return err
		}
	}
	c.Expand()
	dir := c.Dir
	if dir == "" {
		dir, _ = os.Getwd()
	} else if st, err := os.Stat(dir); err != nil || !st.IsDir() {
		return fmt.Errorf("dir=%s: there is no such directory on the host where the cluster is started", dir)
	}
	p, err := native.InspectProgram(c.Program[0], dir)
	switch {
	case err == nil:
		if c.MPI == "" {
			c.MPI = p.MPI
		}
		if c.MPI != "" {
			if err := p.Match(c.MPI, c.Name); err != nil {
				return err
			}
		}
		if c.Hosts == "" { // other hosts may be of the program's architecture
			if err := p.Fits(); err != nil {
				return err
			}
		}
		if err := p.Preloadable(); err != nil {
			return err
		}
		h.examine = p.MPI == "" && !p.ABI && !p.MMPI
	case c.Hosts == "": // on other hosts the program may exist although it does not here: zipper exec will see
		return c.AddPlaceholderHint(err)
	}
	switch {
	case c.Group != "" && h.Tag:
		return errors.New("--tag does not work in the groups of a heterogeneous Slurm job: srun starts the ranks there")
	case c.Group != "" && c.MPI == "":
		return fmt.Errorf("cannot tell which MPI library %s uses: say mpi=openmpi or mpi=mpich", c.Program[0])
	case c.Group != "":
		c.Mpirun = "srun"
	case c.Mpirun == "":
		if err := h.findMPI(ctx); err != nil {
			return err
		}
	}
	if _, err := p.Shim(c.MPI); err != nil && !p.MMPI {
		return err
	}
	if c.Hosts != "" && h.Nodes == "" {
		if _, err := spec.FirstHost(c.Hosts); err != nil {
			return err
		}
	}
	return nil
}

// findMPI sets Mpirun, and also MPI where neither the job nor the program names a library: then it
// is the first that is installed. Mpirun is the bare name, as a user would type it: given a path,
// Open MPI puts its own directories before those of the user's PATH and LD_LIBRARY_PATH.
func (h *Half) findMPI(ctx context.Context) error {
	c := &h.Cluster
	among := []spec.MPI{spec.OpenMPI, spec.MPICH}
	if c.MPI != "" {
		among = []spec.MPI{c.MPI}
	}
	var missing error
	for _, m := range among {
		path, version, err := native.FindMpirun(ctx, m)
		if err == nil {
			c.MPI, c.Mpirun, h.prrte = m, filepath.Base(path), native.ByPRRTE(m, version)
			return nil
		}
		missing = err
	}
	if c.MPI != "" {
		return missing
	}
	return errors.New("there is no mpirun on PATH: load the module of an MPI library, or install one (on Debian: apt-get install openmpi-bin libopenmpi-dev, or mpich libmpich-dev)")
}
