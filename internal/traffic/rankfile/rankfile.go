// Package rankfile reads and writes files with the places of a job's ranks: the one that zipper
// plan writes, and the host lists that the launchers of the clusters' own MPI libraries read.
package rankfile

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/leidenzipper/zipper/internal/lines"
)

// Place is the place of one rank of the job.
type Place struct {
	Host    string
	Cluster string // cluster whose native job the rank is part of; empty if not given
}

// Read reads a plan: "RANK HOST [CLUSTER]" a line, every rank of the job from 0 on once, in any
// order; # begins a comment. It returns the place of each rank. An error names the line.
func Read(r io.Reader) ([]Place, error) {
	at := make(map[int]Place)
	err := lines.Each(r, func(_ int, f []string) error {
		if len(f) != 2 && len(f) != 3 {
			return errors.New("want RANK HOST CLUSTER")
		}
		rank, err := strconv.Atoi(f[0])
		if err != nil || rank < 0 {
			return fmt.Errorf("%q is not a rank", f[0])
		}
		if _, ok := at[rank]; ok {
			return fmt.Errorf("rank %d is placed twice", rank)
		}
		p := Place{Host: f[1]}
		if len(f) == 3 {
			p.Cluster = f[2]
		}
		at[rank] = p
		return nil
	})
	if err != nil {
		return nil, err
	}
	places := make([]Place, len(at))
	for rank := range places {
		p, ok := at[rank]
		if !ok {
			return nil, fmt.Errorf("it places %d ranks but not rank %d", len(at), rank)
		}
		places[rank] = p
	}
	return places, nil
}

// Write writes a plan in the form that Read reads.
func Write(w io.Writer, places []Place) error {
	b := bufio.NewWriter(w)
	fmt.Fprintln(b, "# RANK HOST CLUSTER")
	for rank, p := range places {
		fmt.Fprintln(b, strings.TrimSpace(fmt.Sprint(rank, " ", p.Host, " ", p.Cluster)))
	}
	return b.Flush()
}

// Hosts returns the host of every native rank of a cluster. Ranks of the job keep their order
// there.
func Hosts(places []Place, cluster string) (hosts []string) {
	for _, p := range places {
		if p.Cluster == cluster {
			hosts = append(hosts, p.Host)
		}
	}
	return hosts
}

// WriteHosts writes the host of each native rank, one a line: the format of MPICH's -f, of Slurm's
// SLURM_HOSTFILE with --distribution=arbitrary, and of Open MPI's --hostfile with --map-by seq.
func WriteHosts(w io.Writer, hosts []string) error {
	b := bufio.NewWriter(w)
	for _, h := range hosts {
		fmt.Fprintln(b, h)
	}
	return b.Flush()
}

// WriteOpenMPI writes Open MPI's rankfile: of the ranks on a host the k-th one, counted from 0, is
// bound to the host's slot k, a core.
func WriteOpenMPI(w io.Writer, hosts []string) error {
	b := bufio.NewWriter(w)
	taken := make(map[string]int)
	for rank, h := range hosts {
		fmt.Fprintf(b, "rank %d=%s slot=%d\n", rank, h, taken[h])
		taken[h]++
	}
	return b.Flush()
}
