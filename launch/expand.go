package launch

import (
	"fmt"
	"strings"
)

// expand replaces {mpi} and {cluster} in the program and its arguments, so that one command line serves
// clusters with different builds: ./prog.{mpi}.
func (h *Half) expand() error {
	c := &h.Cluster
	for i, w := range c.Program {
		if strings.Contains(w, "{mpi}") {
			if c.MPI == "" {
				return fmt.Errorf("cluster %s: %q needs the cluster's MPI: say mpi=openmpi or mpi=mpich", c.Name, w)
			}
			w = strings.ReplaceAll(w, "{mpi}", string(c.MPI))
		}
		c.Program[i] = strings.ReplaceAll(w, "{cluster}", c.Name)
	}
	return nil
}
