package job

import (
	"fmt"

	"github.com/leidenzipper/zipper/forwarder/action"
	"github.com/leidenzipper/zipper/handshake"
)

// Launchers report what happens to their halves. If a half has ended, the job ends with the reason
// that the launcher gives. A job waits a moment for a rank whose link was closed (loss.go), so the
// launcher's report, which has the cause, arrives before the job fails of the loss. If a half is
// suspended for longer than the job's patience the job ends. In a job that outlives clusters only
// the half's cluster is lost.

// halves records which halves of the job (the processes of one cluster, under one launcher) are
// suspended.
type halves struct {
	*core
	deaths *deaths
	// suspended has, for each suspended cluster, the reason with which the job ends if that lasts
	// too long.
	suspended map[string]string
}

// endedBy returns the reason for users with which the job ends because a half has ended for the
// given reason.
func (c *core) endedBy(reason string) string {
	return fmt.Sprintf("job %s ended: %s", handshake.JobID(c.id), reason)
}

func (h *halves) suspend(e *HalfSuspended) {
	if _, suspended := h.suspended[e.Cluster]; h.state != Running || suspended {
		return
	}
	reason := fmt.Sprintf("%s for longer than the job's patience of %v (--patience, or ZIPPER_PATIENCE, in all clusters)",
		e.Reason, h.patience())
	if !h.outlives() {
		reason = h.endedBy(reason)
	}
	h.suspended[e.Cluster] = reason
	h.arm(h.timer(e.Cluster), h.patience())
}

func (h *halves) resume(cluster string) {
	if _, suspended := h.suspended[cluster]; suspended {
		delete(h.suspended, cluster)
		h.disarm(h.timer(cluster))
	}
}

// timer returns the timer that ends the job if a cluster stays suspended for too long.
func (h *halves) timer(cluster string) action.Timer {
	return action.Timer{Kind: action.Suspended, Of: h.clusterIndex(cluster)}
}

// suspensionExpired ends the job, or only the cluster's part in a job that outlives clusters,
// because the cluster with an index was suspended for longer than the job's patience.
func (h *halves) suspensionExpired(cluster int) {
	if reason, suspended := h.suspended[h.clusters[cluster].Name]; suspended {
		h.deaths.ofCluster(cluster, reason)
	}
}
