package spec

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/leidenzipper/zipper/internal/wire"
)

// Expand replaces {mpi}, {arch} and {cluster} in the program and its arguments, so that one command
// line serves clusters with different builds: ./prog.{mpi}.{arch}. In the path of the zipper
// command it replaces {arch}. The cluster's MPI must be known, and its launcher be on this host,
// whose architecture {arch} is.
func (c *Cluster) Expand() {
	r := strings.NewReplacer("{mpi}", string(c.MPI), Arch, wire.Architecture(), "{cluster}", c.Name)
	c.Zipper = strings.ReplaceAll(c.Zipper, Arch, wire.Architecture())
	c.Program = slices.Clone(c.Program)
	for i, w := range c.Program {
		c.Program[i] = r.Replace(w)
	}
}

// Arch stands for the architecture of the host where a cluster's launcher runs.
const Arch = "{arch}"

var braces = regexp.MustCompile(`\{[A-Za-z]+\}`)

// AddPlaceholderHint adds to an error about a program the word in braces that may be meant.
func (c *Cluster) AddPlaceholderHint(err error) error {
	if b := braces.FindString(c.Program[0]); b != "" {
		return fmt.Errorf("%w (%s is not a placeholder; {mpi}, {arch} and {cluster} are)", err, b)
	}
	return err
}

// NamesMPI tells whether the program depends on the cluster's MPI.
func (c *Cluster) NamesMPI() bool {
	return slices.ContainsFunc(c.Program, func(w string) bool { return strings.Contains(w, "{mpi}") })
}
