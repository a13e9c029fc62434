package spec

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// Expand replaces {mpi} and {cluster} in the program and its arguments, so that one command line
// serves clusters with different builds: ./prog.{mpi}. The cluster's MPI must be known.
func (c *Cluster) Expand() {
	r := strings.NewReplacer("{mpi}", string(c.MPI), "{cluster}", c.Name)
	c.Program = slices.Clone(c.Program)
	for i, w := range c.Program {
		c.Program[i] = r.Replace(w)
	}
}

var braces = regexp.MustCompile(`\{[A-Za-z]+\}`)

// AddPlaceholderHint adds to an error about a program the word in braces that may be meant.
func (c *Cluster) AddPlaceholderHint(err error) error {
	if b := braces.FindString(c.Program[0]); b != "" {
		return fmt.Errorf("%w (%s is not a placeholder; {mpi} and {cluster} are)", err, b)
	}
	return err
}

// NamesMPI tells whether the program depends on the cluster's MPI.
func (c *Cluster) NamesMPI() bool {
	return slices.ContainsFunc(c.Program, func(w string) bool { return strings.Contains(w, "{mpi}") })
}
