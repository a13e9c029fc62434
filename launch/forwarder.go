package launch

import (
	"context"
	"fmt"
	"net"
	"os"
	"strings"
	"time"

	"github.com/leidenzipper/zipper/launch/spec"
)

// Forwarder is one that was started for a job and knows how the job stands.
type Forwarder interface {
	// Address returns HOST:PORT for a cluster whose nodes reach this host at host.
	Address(host string) string
	// HostKey is the key by which it is known (wire.FormatHostKey).
	HostKey() string
	// View tells how the job stands, now or, when it has ended, how it ended.
	View() View
	// ClusterEnded tells it that all processes of a cluster have ended: none of its ranks comes
	// back, so the loss of one is the end of the job.
	ClusterEnded(cluster string)
	// Settle waits, a bounded time, until it has seen the links of ended processes close.
	Settle()
	// Close ends it.
	Close()
}

// Wanted is what a job wants of the forwarder on this host that is started for it.
type Wanted struct {
	Job, Secret string // it serves this job only, by its key
	Protocol    string // the job's
	Local       bool   // only processes of this host have to reach it
	// Timeout is how long the clusters wait for each other to join.
	Timeout time.Duration
}

// View is a forwarder's view of a job.
type View struct {
	Known   bool   // it is gathering or running
	Ended   bool   // it ran and is over
	Started bool   // all ranks of all clusters had joined
	Missing string // while gathering: who has not joined
	OK      bool   // ended, and every rank took its leave properly
	Code    int    // of MPI_Abort, or 1 for a lost rank
	Reason  string // why it failed; empty: it did not
	Traffic []Traffic
}

// Traffic is what went from the ranks of one cluster to those of another.
type Traffic struct {
	From     string `json:"from"`
	To       string `json:"to"`
	Messages uint64 `json:"messages"`
	Bytes    uint64 `json:"bytes"`    // the program's data
	Overhead uint64 `json:"overhead"` // headers and control frames, bytes
}

// startForwarder starts a forwarder if the job names none, and gives every half its addresses.
func startForwarder(ctx context.Context, j *spec.Job, halves []*runner, o Options) (fwd Forwarder, err error) {
	if len(j.Zippers) == 0 && len(halves) > 1 {
		local := true
		for _, h := range halves {
			local = local && h.rsh == nil && h.Cluster.Here()
		}
		if fwd, err = o.StartForwarder(ctx, Wanted{j.ID, j.Secret, j.Protocol, local, j.Timeout}); err != nil {
			return nil, fmt.Errorf("cannot start a forwarder on this host: %w", err)
		}
		z := spec.Zipper{Per: map[string]string{}, HostKey: fwd.HostKey()}
		for _, h := range halves {
			z.Per[h.Cluster.Name] = fwd.Address(SeenFrom(h.Cluster))
		}
		j.Zippers = []spec.Zipper{z}
	}
	for _, h := range halves {
		h.Share = j.Share(h.Cluster.Name)
	}
	return fwd, nil
}

// SeenFrom is this host's address as the cluster's hosts reach it.
func SeenFrom(c spec.Cluster) string {
	peer := c.Login
	if peer == "" && c.Hosts != "" {
		peer, _ = spec.FirstHost(c.Hosts)
	}
	if peer == "" && c.Group != "" {
		nodes, _ := spec.ExpandHosts(os.Getenv("SLURM_JOB_NODELIST_HET_GROUP_" + c.Group))
		if len(nodes) > 0 {
			peer = nodes[0]
		}
	}
	if peer == "" && c.Here() {
		return "127.0.0.1"
	}
	if peer = peer[strings.LastIndexByte(peer, '@')+1:]; peer != "" {
		// Connecting a datagram socket sends nothing; it asks the kernel which way the peer is.
		if c, err := net.Dial("udp", net.JoinHostPort(peer, "9")); err == nil {
			defer c.Close()
			if a, ok := c.LocalAddr().(*net.UDPAddr); ok {
				return a.IP.String()
			}
		}
	}
	host, err := os.Hostname()
	if err != nil {
		return "127.0.0.1"
	}
	return host
}
