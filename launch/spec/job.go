// Package spec is the description of a job: its clusters, forwarders and program, from flags, a
// job file, a plan or what the batch system says. It starts nothing.
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
	ID       string // any word; made up when empty
	Secret   string // made up when empty
	Ticket   string // for forwarders that demand one
	Clusters []Cluster
	// Order is that of the ranks of MPI_COMM_WORLD: the cluster of each, in runs
	// (jobenv.ParseOrder). Empty: that of virtual rank.
	Order []jobenv.Cluster
	// Networks are those without ranks, which join zippers: a long link between sites. Names.
	Networks []string
	// Zippers are the forwarders. Empty: one is started on this host for the time of the job.
	Zippers     []Zipper
	Program     []string      // program and arguments, for clusters that have none of their own
	Timeout     time.Duration // how long a cluster waits for the others to join; 0 = 60 s
	Poll        string        // ZIPPER_POLL of every process
	Protocol    string        // ZIPPER_PROTOCOL of every process and, if it is started here, of the forwarder
	Level       string        // ZIPPER_LEVEL of every process
	Patience    string        // ZIPPER_PATIENCE of every process
	Collectives string        // ZIPPER_COLLECTIVES of every process
	Log         string        // ZIPPER_LOG of every process
	Env         map[string]string
	Rsh         []string // the remote shell for launcher ssh and zippers with a login; empty = ssh -o BatchMode=yes
}

var word = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_.-]*$`)

// Normalize fills in what is empty and checks the whole. The error says what to change.
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
	j.Clusters = slices.Clone(j.Clusters) // the caller's stay as they are
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
		return fmt.Errorf("network %s has no zippers: say which are on it, as in --zipper a@HOST+%s@HOST",
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
				return fmt.Errorf("a zipper has no address on network %q, which is none of the networks without ranks",
					name)
			}
		}
		for _, name := range z.Networks {
			if !known(name) {
				return fmt.Errorf("a zipper is said to be on the network of cluster %q, which the job does not have",
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
	_, _ = rand.Read(b) // crypto/rand.Read never fails: it ends the process instead
	return hex.EncodeToString(b)
}
