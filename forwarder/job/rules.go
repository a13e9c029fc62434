package job

import (
	"slices"

	"github.com/leidenzipper/zipper/forwarder/bridge"
	"github.com/leidenzipper/zipper/internal/wire"
)

// sendByes sends Bye on the bridges that can carry no more frames, because the ranks here have
// left, and so have those behind bridges to other networks. Frames from a forwarder are never
// forwarded to another one on the same network. On a bridge that is cut, Bye is sent once the
// bridge is restored.
func (j *Job) sendByes() {
	if j.ranks.remaining > 0 {
		return
	}
	for _, br := range j.links.list() {
		still := func(o *bridge.Bridge) bool { return j.links.network(o) != j.links.network(br) && !o.ByeReceived() }
		if !br.ByeSent() && br.First() != 0 && !slices.ContainsFunc(j.links.list(), still) {
			j.cross(br.Zipper, bridge.Finish{})
		}
	}
}

// stop ends a job for a reason that does not come from a rank. Ranks that wait are refused with a
// code. Ranks of a running job get Abort with an exit status.
func (j *Job) stop(refusal wire.RefuseCode, status int32, reason string) {
	switch j.state {
	case Gathering:
		j.gathering.giveUp(refusal, reason)
	case Running:
		j.ending.failWith(status, reason, abortFrame(status, wire.Nobody, reason), 0)
	}
}

// endIfOver ends a job that runs or is ending if it has no links any more and waits for none. If
// the kernel still forwards connections for the job, it first asks the kernel to stop that.
func (j *Job) endIfOver() {
	expects := j.state == Running && (len(j.losses.waits) > 0 || j.links.expected())
	if j.ranks.live > 0 || expects || j.state != Running && j.state != Ending {
		return
	}
	if j.state == Running {
		// Ranks that are absent may have gone on over another forwarder, and said Bye there. They
		// have not left here in order, so the job has failed for this forwarder.
		var r result
		if absent := sorted(j.ranks.absent); len(absent) > 0 {
			r = result{1, j.ranks.absent[absent[0]].reason}
		}
		j.finish(Ending, r)
	}
	if j.ways.finish() {
		j.conclude()
	} else {
		j.to(Closing)
	}
}

// conclude ends a job that has run and has neither links nor open ways of the kernel.
func (j *Job) conclude() {
	if !j.to(Ended) {
		return
	}
	for _, cluster := range sorted(j.halves.suspended) {
		j.halves.resume(cluster)
	}
	j.gathering.free(j.gathering.kept)
	j.do(Over{})
}
