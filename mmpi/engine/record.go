package engine

import (
	"fmt"
	"os"

	"github.com/leidenzipper/zipper/jobenv"
	"github.com/leidenzipper/zipper/traffic/trace"
)

// recordLimit is how many messages of each direction a rank keeps with their times: 24 MiB each at most. Beyond it only the matrix goes on.
const recordLimit = 1 << 20

// recording is what `zipper run --record` asks for: this rank's traffic, in times since the engine's start. That is when the last rank had joined,
// at nearly the same moment everywhere, so the clocks of the hosts do not matter.
type recording struct {
	recorder *trace.Recorder
	path     string
	host     string
}

// record starts recording if the job's environment asks for it. Call it before the engine is used.
func (e *Engine) record(job jobenv.Job, host string) {
	if job.Report == "" {
		return
	}
	e.recording = &recording{trace.NewRecorder(e.world.Rank, recordLimit), fmt.Sprintf("%s%d", job.Report, e.world.Rank), host}
}

func (e *Engine) recordSent(c *Comm, p *peer, bytes int) {
	if e.recording != nil && c.context != controlContext {
		e.recording.recorder.Sent(int64(e.now()), p.rank, int64(bytes))
	}
}

func (e *Engine) recordReceived(r *Request) {
	if e.recording != nil && r.comm.context != controlContext {
		e.recording.recorder.Received(int64(e.now()), r.peer.rank)
	}
}

// Recording reports whether traffic is being recorded.
func (e *Engine) Recording() bool { return e.recording != nil }

// RecordLocal counts a message to a rank of this cluster, which the engine does not see. Safe for concurrent use.
func (e *Engine) RecordLocal(rank int, bytes int64) {
	if e.recording != nil && rank != e.world.Rank && e.sameCluster(rank) {
		e.recording.recorder.Count(rank, bytes)
	}
}

// writeRecord leaves this rank's part where the launcher looks for it.
func (e *Engine) writeRecord() error {
	if e.recording == nil {
		return nil
	}
	f, err := os.Create(e.recording.path)
	if err != nil {
		return fmt.Errorf("recording traffic: %w", err)
	}
	err = e.recording.recorder.Write(f, e.recording.host)
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		return fmt.Errorf("recording traffic: %w", err)
	}
	return nil
}
