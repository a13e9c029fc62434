package launch

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/leidenzipper/zipper/internal/jobenv"
	"github.com/leidenzipper/zipper/launch/spec"
)

// A job that outlives clusters (jobenv.LossContinues) goes on when a half of it is lost. The other
// halves are not ended, and decide about the job's status. If this run has started the forwarder,
// the forwarder says which clusters are lost. Otherwise those halves are lost that have failed,
// provided that another one has succeeded.

// waiter watches the halves of a job end. It decides when the others have to end, and which status
// the job has. It is not safe for concurrent use.
type waiter struct {
	job *spec.Job
	// fwd is the forwarder that this run has started; it is nil if another process has started it.
	fwd Forwarder
	// stop ends the other halves.
	stop context.CancelCauseFunc

	// all has the halves that have ended.
	all []Ended
	// first is the index in all of the half that decides, if failed is true.
	first  int
	failed bool
	// early tells that it failed before all ranks had joined.
	early bool
	err   error
	timer *time.Timer
	// stopped tells that this run has ended the other halves.
	stopped atomic.Bool
}

func (w *waiter) ended(e Ended) {
	e.Killed = w.stopped.Load()
	w.all = append(w.all, e)
	if w.fwd != nil {
		w.fwd.ClusterEnded(e.Cluster)
	}
	if w.failed || w.outlives() {
		return
	}
	switch {
	// With all ranks in the job it has the program's status, not that of the remote shell.
	case e.err != nil && (w.fwd == nil || !w.started()):
		w.fail(e.err, 0)
	case e.Status != 0:
		wait := othersTime
		if !w.started() {
			wait = 0 // no rank could tell the others
		}
		w.fail(nil, wait)
	case !w.started():
		w.fail(fmt.Errorf("cluster %s %w", e.Cluster, ErrNotJoined), 0)
	}
}

// started tells whether all ranks had joined. It returns true if this run cannot know.
func (w *waiter) started() bool {
	return w.fwd == nil || w.fwd.View().Started
}

func (w *waiter) fail(err error, wait time.Duration) {
	w.failed, w.first, w.err, w.early = true, len(w.all)-1, err, !w.started()
	cause := &otherFailed{w.all[w.first].Cluster}
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

// abortCode returns the exit status for MPI_Abort's code, or for the forwarder's reason to end the
// job.
func (w *waiter) abortCode() int { return w.fwd.View().Code & 0xff }

// verdict returns the job's exit status, and the reason if the job failed for one other than the
// program's status.
func (w *waiter) verdict() (int, error) {
	if !w.failed {
		return 0, nil
	}
	status := w.all[w.first].Status
	if w.fwd != nil {
		if code := w.abortCode(); code > 1 {
			status = code // the code of MPI_Abort, whichever cluster's launcher ended first
		}
	}
	// Ranks that learn of a lost rank end with 1, and their launcher may end first. Then the status
	// of the cluster that lost the rank is more useful.
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

// explain adds the launchers' knowledge to the forwarder's reason for a failure, which may be
// empty: the status of the cluster that gave the job its own and, if the forwarder has no reason,
// the first error of that cluster's ranks.
func (w *waiter) explain(status int, reason string) string {
	if status == 0 || reason != "" && w.abortCode() > 1 {
		return reason // the reason has MPI_Abort's code
	}
	e := w.cause(status)
	if e.Cluster == "" {
		return reason
	}
	ended := fmt.Sprintf("cluster %s ended with %s", e.Cluster, DescribeStatus(status))
	switch {
	case reason != "":
		return reason + "; " + ended
	case e.complaint != "":
		return ended + ": " + e.complaint
	case w.early && e.script != "":
		return fmt.Sprintf("%s before all its ranks had joined the job; %s is not linked to MPI: if it is a script with an mpirun of its own, give zipper the program that this mpirun starts, with its arguments",
			ended, e.script)
	}
	return ended
}

// cause returns the half that gave the job its status. It is empty if no half did, or the job
// succeeded.
func (w *waiter) cause(status int) Ended {
	for _, e := range w.all {
		if status != 0 && e.Status == status && !e.Killed {
			return e
		}
	}
	return Ended{}
}

// boxes returns the launchers' boxes to show: those of the half that gave the job its status or, if
// no half did, of the first that failed. It returns an empty string if the job succeeded.
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

// outlives reports whether the other halves continue after the failure of one: the job outlives
// clusters, all of its ranks had joined, and it has not failed as a whole.
func (w *waiter) outlives() bool {
	return w.job.OnLoss == jobenv.LossContinues && w.started() && (w.fwd == nil || w.fwd.View().Reason == "")
}

func (e *Ended) failed() bool { return e.Status != 0 || e.err != nil }

// lost returns the clusters that a job has lost, in order. begin is the time at which the run
// began.
func (w *waiter) lost(begin time.Time) (list []Lost) {
	switch {
	case w.job.OnLoss != jobenv.LossContinues:
	case w.fwd != nil:
		for _, l := range w.fwd.View().Lost {
			reason := strings.TrimPrefix(l.Reason, "cluster "+l.Cluster+" is lost: ")
			if i := w.index(l.Cluster); i >= 0 && w.all[i].Status != 0 {
				reason += fmt.Sprintf("; cluster %s ended with %s", l.Cluster, DescribeStatus(w.all[i].Status))
			}
			list = append(list, Lost{l.Cluster, l.At.Sub(begin).Seconds(), reason})
		}
	case !w.failed && slices.ContainsFunc(w.all, func(e Ended) bool { return !e.failed() }):
		for _, e := range w.all {
			if e.failed() {
				list = append(list, Lost{e.Cluster, e.Seconds, e.reason()})
			}
		}
	}
	return list
}

// reason returns why a half has failed, for users.
func (e *Ended) reason() string {
	switch {
	case e.err != nil:
		return e.err.Error()
	case e.complaint != "":
		return fmt.Sprintf("it ended with %s: %s", DescribeStatus(e.Status), e.complaint)
	}
	return "it ended with " + DescribeStatus(e.Status)
}

// index returns the index in w.all of a cluster's half, or -1 if it has not ended.
func (w *waiter) index(cluster string) int {
	return slices.IndexFunc(w.all, func(e Ended) bool { return e.Cluster == cluster })
}

// judge finds the half that decides about a job that has outlived clusters: the first one that was
// not lost and has failed or, if all were lost, the last of these. All halves have ended.
func (w *waiter) judge(lost []Lost) {
	if w.failed || w.job.OnLoss != jobenv.LossContinues {
		return
	}
	isLost := func(cluster string) bool {
		return slices.ContainsFunc(lost, func(l Lost) bool { return l.Cluster == cluster })
	}
	w.first = slices.IndexFunc(w.all, func(e Ended) bool { return e.failed() && !isLost(e.Cluster) })
	if w.first < 0 && len(lost) == len(w.all) {
		w.first = w.index(lost[len(lost)-1].Cluster)
	}
	if w.failed = w.first >= 0; w.failed && w.fwd == nil {
		w.err = w.all[w.first].err
	}
}
