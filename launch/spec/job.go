// Package spec describes a job: its clusters, forwarders and program. The description comes from
// flags, a job file, a plan or the batch system. The package starts nothing.
package spec

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"time"

	"github.com/leidenzipper/zipper/internal/jobenv"
	"github.com/leidenzipper/zipper/internal/wire"
)

// Job describes one MPI world over several clusters.
type Job struct {
	// ID is any word; Normalize makes one up if it is empty.
	ID string
	// Secret is made up as well if it is empty.
	Secret string
	// Ticket is for forwarders that demand one.
	Ticket   string
	Clusters []Cluster
	// Order has the cluster of each rank of MPI_COMM_WORLD, in runs (jobenv.ParseOrder). If it is
	// empty, the order is that of virtual ranks.
	Order []jobenv.Cluster
	// Networks are the names of networks without ranks, which join zippers, such as a long link
	// between sites.
	Networks []string
	// Zippers are the forwarders. If there are none, one is started on this host for the time of
	// the job.
	Zippers []Zipper
	// Program is the program with its arguments, for clusters that have none of their own.
	Program []string
	// Timeout is how long a cluster waits for the others to join; 0 means 60 s.
	Timeout time.Duration
	// Poll is ZIPPER_POLL of every process.
	Poll string
	// Protocol is ZIPPER_PROTOCOL of every process, and that of the forwarder if it is started
	// here.
	Protocol string
	// Level is ZIPPER_LEVEL of every process.
	Level string
	// Patience is ZIPPER_PATIENCE of every process.
	Patience string
	// OnLoss is ZIPPER_ON_LOSS of every process, and Quorum its ZIPPER_QUORUM.
	OnLoss, Quorum string
	// Collectives is ZIPPER_COLLECTIVES of every process.
	Collectives string
	// Log is ZIPPER_LOG of every process.
	Log string
	// Env are further variables of every process.
	Env map[string]string
	// Stage names the files that zipper submit copies.
	Stage Stage
	// Rsh is the remote shell for the launcher ssh and for zippers with a login; an empty list
	// means ssh -o BatchMode=yes.
	Rsh []string
}

var word = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_.-]*$`)

// Normalize sets empty fields to their defaults and checks the job. The error says what to change.
func (j *Job) Normalize() error {
	if j.ID == "" {
		j.ID = randomHex(6)
	}
	if j.Secret == "" {
		j.Secret = jobenv.NewSecret()
	}
	if j.Timeout == 0 {
		j.Timeout = defaultTimeout
	}
	if !word.MatchString(j.ID) {
		return fmt.Errorf("job id %q: use letters, digits, '.', '_' and '-'", j.ID)
	}
	if err := jobenv.ParseProtocol(j.Protocol); err != nil {
		return err
	}
	if _, err := jobenv.ParseLevel(j.Level, j.Protocol, j.Networks); err != nil {
		return err
	}
	if _, err := jobenv.ParsePatience(j.Patience); err != nil {
		return fmt.Errorf("patience %w", err)
	}
	outlives, err := jobenv.ParseOnLoss(j.OnLoss, j.Protocol)
	if err != nil {
		return fmt.Errorf("on-loss %w", err)
	}
	if _, err := jobenv.ParseQuorum(j.Quorum, outlives); err != nil {
		return fmt.Errorf("quorum %w", err)
	}
	if j.Protocol != "" && len(j.Zippers) > 1 {
		return fmt.Errorf("protocol %s works with one zipper; the job has %d", j.Protocol, len(j.Zippers))
	}
	if j.Timeout < 0 {
		return fmt.Errorf("timeout %v: want a positive duration such as 60s", j.Timeout)
	}
	if len(j.Clusters) == 0 {
		return errors.New("no clusters: give at least one, as in --cluster a=2 --cluster b=2,mpi=mpich")
	}
	names, total := map[string]bool{}, 0
	j.Clusters = slices.Clone(j.Clusters) // the caller's clusters stay unchanged
	for i := range j.Clusters {
		c := &j.Clusters[i]
		if err := c.normalize(j); err != nil {
			return err
		}
		if names[c.Name] {
			return fmt.Errorf("cluster %q is given twice: every cluster needs a name of its own", c.Name)
		}
		names[c.Name] = true
		if total += c.Ranks; total > wire.MaxRanks {
			return fmt.Errorf("the clusters have more than %d ranks together, which is the most in one job",
				wire.MaxRanks)
		}
	}
	if err := jobenv.CheckOrder(j.Order, j.Layout()); err != nil {
		return err
	}
	if jobenv.VirtualRanks(j.Order, j.Layout()) == nil {
		j.Order = nil
	}
	if err := jobenv.CheckNetworks(j.Networks, j.Layout()); err != nil {
		return err
	}
	if len(j.Networks) > 0 && len(j.Zippers) == 0 {
		return fmt.Errorf("network %s has no zippers: name those that are on it, as in --zipper a@HOST+%s@HOST",
			j.Networks[0], j.Networks[0])
	}
	known := func(name string) bool { return names[name] || slices.Contains(j.Networks, name) }
	for _, z := range j.Zippers {
		for name := range z.Per {
			if !known(name) {
				return fmt.Errorf("zipper %s is named for cluster %q, which the job does not have "+
					"(name a network without ranks by --network, or under networks:)", z.Per[name], name)
			}
		}
		for _, name := range z.Dials {
			if !slices.Contains(j.Networks, name) {
				return fmt.Errorf("a zipper has no address on network %q, which is not one of the networks without ranks",
					name)
			}
		}
		for _, name := range z.Networks {
			if !known(name) {
				return fmt.Errorf("a zipper is on the network of cluster %q, which the job does not have",
					name)
			}
			if z.AddressFor(name) == "" && !slices.Contains(z.Dials, name) {
				//nolint:staticcheck // the colon at the end is the key's
				return fmt.Errorf("a zipper has no address for cluster %q: give it address: HOST[:PORT], or one under addresses:",
					name)
			}
		}
	}
	for name := range names {
		known := map[string]bool{}
		for _, z := range j.Zippers {
			a := z.AddressFor(name)
			if a != "" && known[a] {
				return fmt.Errorf("zipper %s is given twice", a)
			}
			known[a] = true
		}
	}
	for _, c := range j.Clusters {
		err := jobenv.CheckDual(c.Dual, c.Name, j.Layout())
		if err == nil && len(c.Dual) > 0 && j.Protocol != "" {
			err = fmt.Errorf("protocol %s has no direct links", j.Protocol)
		}
		if err != nil {
			return fmt.Errorf("cluster %s: dual: %w", c.Name, err)
		}
	}
	if hops := j.hops(); hops != nil {
		net := jobenv.Net{Layout: j.Layout(), Networks: j.Networks}
		if _, _, err := net.Rows(hops); err != nil {
			return fmt.Errorf("%w (a zipper that has no address for a cluster, or does not have it under clusters:, is not on its network)",
				err)
		}
	}
	j.Rsh = j.RemoteShell()
	return nil
}

func randomHex(bytes int) string {
	b := make([]byte, bytes)
	_, _ = rand.Read(b) // crypto/rand.Read never fails: it ends the process
	return hex.EncodeToString(b)
}
