package job

import (
	"fmt"

	"github.com/leidenzipper/zipper/forwarder/action"
	"github.com/leidenzipper/zipper/handshake"
	"github.com/leidenzipper/zipper/internal/wire"
)

// Launchers speak of their halves: the holder of a job's secret may end it, by name. A half has
// ended: a job that gathers or runs ends with that reason. A job of one forwarder waits a moment
// for a rank whose link was closed (loss.go), so the launcher's word, which knows the cause, comes
// before that. A half is suspended: the job ends if that takes longer than its patience.

// halves are the clusters that stand still.
type halves struct {
	*core
	ending    *ending
	suspended map[string]string // suspended has, for each of them, why the job may end of it.
}

// endedBy says that a half has ended the job.
func (c *core) endedBy(reason string) string {
	return fmt.Sprintf("job %s ended: %s", handshake.JobID(c.id), reason)
}

func (h *halves) suspend(e *HalfSuspended) {
	if _, suspended := h.suspended[e.Cluster]; h.state != Running || suspended {
		return
	}
	h.suspended[e.Cluster] = h.endedBy(fmt.Sprintf(
		"%s for longer than the job's patience of %v (--patience, or ZIPPER_PATIENCE, in all clusters)", e.Reason, h.patience()))
	h.arm(h.timer(e.Cluster), h.patience())
}

func (h *halves) resume(cluster string) {
	if _, suspended := h.suspended[cluster]; suspended {
		delete(h.suspended, cluster)
		h.disarm(h.timer(cluster))
	}
}

// timer is that of a cluster that stands still.
func (h *halves) timer(cluster string) action.Timer {
	return action.Timer{Kind: action.Suspended, Of: h.clusterIndex(cluster)}
}

// stoodStill ends a job of which a cluster has stood still for too long.
func (h *halves) stoodStill(cluster int) {
	if reason, suspended := h.suspended[h.clusters[cluster].Name]; suspended {
		h.ending.fail(wire.Nobody, reason, 0)
	}
}
