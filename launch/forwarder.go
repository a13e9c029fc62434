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

// Forwarder is a forwarder that was started for a job and knows the job's state.
type Forwarder interface {
	// Address returns HOST:PORT for a cluster whose nodes reach this host at host.
	Address(host string) string
	// HostKey returns the key by which ranks recognize the forwarder (wire.FormatHostKey).
	HostKey() string
	// View returns the job's present state or, when the job has ended, its final state.
	View() View
	// ClusterEnded reports that all processes of a cluster have ended: none of its ranks comes
	// back, so the loss of one ends the job.
	ClusterEnded(cluster string)
	// Settle waits, a bounded time, until the forwarder has seen the links of ended processes
	// close.
	Settle()
	// Close ends the forwarder.
	Close()
}

// Wanted describes the forwarder on this host that is started for a job.
type Wanted struct {
	// Job and Secret are those of the only job that the forwarder serves.
	Job, Secret string
	// Protocol is the job's protocol.
	Protocol string
	// Local tells that only processes of this host have to reach the forwarder.
	Local bool
	// Timeout is how long the clusters wait for each other to join.
	Timeout time.Duration
}

// View is a forwarder's view of a job.
type View struct {
	// Known tells that the job is gathering or running.
	Known bool
	// Ended tells that the job ran and is over.
	Ended bool
	// Started tells that all ranks of all clusters had joined.
	Started bool
	// Missing names the ranks that have not joined while the job is gathering.
	Missing string
	// OK tells that the job has ended and every rank left it properly.
	OK bool
	// Code is the code of MPI_Abort, or 1 for a lost rank.
	Code int
	// Reason tells why the job failed; it is empty if the job did not fail.
	Reason string
	// Lost has the clusters that a job which outlives clusters has lost, in order.
	Lost    []LostCluster
	Traffic []Traffic
	// Kernel is the traffic over connections between ranks that the forwarder's kernel forwards.
	Kernel KernelTraffic
}

// KernelTraffic counts the messages, and their data in bytes, over connections that the kernel of
// the forwarder's host forwards.
type KernelTraffic struct {
	Messages uint64 `json:"messages"`
	Bytes    uint64 `json:"bytes"`
}

// LostCluster is a forwarder's report of a lost cluster.
type LostCluster struct {
	Cluster string
	At      time.Time
	Reason  string
}

// Traffic counts the messages from the ranks of one cluster to those of another.
type Traffic struct {
	From     string `json:"from"`
	To       string `json:"to"`
	Messages uint64 `json:"messages"`
	// Bytes is the program's data.
	Bytes uint64 `json:"bytes"`
	// Overhead is the size of headers and control frames in bytes.
	Overhead uint64 `json:"overhead"`
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

// SeenFrom returns this host's address as the cluster's hosts reach it.
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
		// Connecting a datagram socket sends nothing; the kernel finds the route to the peer.
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
