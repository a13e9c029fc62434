package launch

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/leidenzipper/zipper/launch/spec"
)

// waiter watches the halves of a job end and decides when the rest has to follow, and what the
// whole comes to. Not safe for concurrent use.
type waiter struct {
	job  *spec.Job
	fwd  Forwarder // nil: a forwarder that we did not start
	stop context.CancelCauseFunc

	all     []Ended
	first   int // index in all of the half that decides, if failed
	failed  bool
	early   bool // it failed before all ranks had joined
	err     error
	timer   *time.Timer
	stopped atomic.Bool // the rest was told to end, by us
}

func (w *waiter) ended(e Ended) {
	e.Killed = w.stopped.Load()
	w.all = append(w.all, e)
	if w.fwd != nil {
		w.fwd.ClusterEnded(e.Cluster)
	}
	if w.failed {
		return
	}
	switch {
	// with all ranks there it has the program's status, not the remote shell's
	case e.err != nil && (w.fwd == nil || !w.started()):
		w.fail(e.err, 0)
	case e.Status != 0:
		wait := othersTime
		if !w.started() {
			wait = 0 // nobody is there who could tell the others
		}
		w.fail(nil, wait)
	case !w.started():
		w.fail(fmt.Errorf("cluster %s %w", e.Cluster, ErrNotJoined), 0)
	}
}

// started reports whether all ranks had joined; true if that cannot be known.
func (w *waiter) started() bool {
	return w.fwd == nil || w.fwd.View().Started
}

func (w *waiter) fail(err error, wait time.Duration) {
	w.failed, w.first, w.err, w.early = true, len(w.all)-1, err, !w.started()
	cause := &elsewhere{w.all[w.first].Cluster}
	if wait == 0 {
		w.stopped.Store(true)
		w.stop(cause)
		return
	}
	w.timer = time.AfterFunc(wait, func() {
		w.stopped.Store(true)
		w.stop(cause)
	})
}

func (w *waiter) close() {
	if w.timer != nil {
		w.timer.Stop()
	}
}

// abortCode is the exit status that MPI_Abort's code, or why the forwarder ended the job, gives.
func (w *waiter) abortCode() int { return w.fwd.View().Code & 0xff }

// verdict gives the job's exit status and, if it failed for a reason other than the program's
// status, the reason.
func (w *waiter) verdict() (int, error) {
	if !w.failed {
		return 0, nil
	}
	status := w.all[w.first].Status
	if w.fwd != nil {
		if code := w.abortCode(); code > 1 {
			status = code // MPI_Abort's own, whichever cluster's launcher ended first
		}
	}
	// Ranks that are told of a lost one end with 1, and their launcher may end first: then the
	// status of the cluster that lost it says more.
	for _, e := range w.all {
		if status == 1 && !e.Killed {
			status = max(e.Status, 1)
		}
	}
	if status == 0 {
		status = 1
	}
	return status, w.err
}

// explain adds to the forwarder's reason for a failure, which may be empty, what the launchers
// know: the status of the cluster that gave the job its own, and, if the forwarder says nothing,
// what that cluster's ranks said.
func (w *waiter) explain(status int, reason string) string {
	if status == 0 || reason != "" && w.abortCode() > 1 {
		return reason // MPI_Abort's code is in the reason
	}
	e := w.cause(status)
	if e.Cluster == "" {
		return reason
	}
	ended := fmt.Sprintf("cluster %s ended with %s", e.Cluster, DescribeStatus(status))
	switch {
	case reason != "":
		return reason + "; " + ended
	case e.said != "":
		return ended + ": " + e.said
	case w.early && e.script != "":
		return fmt.Sprintf("%s before all its ranks had joined the job; %s is not linked to MPI: if it is a script with an mpirun of its own, give zipper the program that this mpirun starts, with its arguments",
			ended, e.script)
	}
	return ended
}

// cause is the half that gave the job its status; empty: none did, or the job went well.
func (w *waiter) cause(status int) Ended {
	for _, e := range w.all {
		if status != 0 && e.Status == status && !e.Killed {
			return e
		}
	}
	return Ended{}
}

// boxes returns the launchers' boxes that are to be shown: those of the half that gave the job its
// status or, if no half did, of the first that failed; empty if the job went well.
func (w *waiter) boxes(status int) string {
	e := w.cause(status)
	if e.Cluster == "" && w.failed {
		e = w.all[w.first]
	}
	return e.boxes
}

// inOrder returns the halves in the job's order.
func (w *waiter) inOrder() []Ended {
	var out []Ended
	for _, c := range w.job.Clusters {
		for _, e := range w.all {
			if e.Cluster == c.Name {
				out = append(out, e)
			}
		}
	}
	return out
}
