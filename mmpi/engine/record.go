package engine

import "time"

// Recorder keeps a process's traffic. Times are since the engine's start. Its methods are called
// from any thread, also at once.
type Recorder interface {
	// Sent notes a message to a virtual rank of another cluster when its send is called.
	Sent(at time.Duration, to, bytes int)
	// Received notes that a message of another cluster has arrived completely.
	Received(at time.Duration, from int)
	// Inside notes a message to another rank of the own cluster, which native MPI carries.
	Inside(to int, bytes int64)
	// Close is called once, when the engine has finished; its error is Finish's.
	Close() error
}

func (e *Engine) recordSent(c *Comm, p *peer, bytes int) {
	if e.recorder != nil && c.context != controlContext {
		e.recorder.Sent(e.now(), p.rank, bytes)
	}
}

func (e *Engine) recordReceived(r *Request) {
	if e.recorder != nil && r.comm.context != controlContext {
		e.recorder.Received(e.now(), r.peer.rank)
	}
}

// Recording reports whether traffic is being recorded.
func (e *Engine) Recording() bool { return e.recorder != nil }

// RecordLocal counts a message to a rank of this cluster, which the engine does not see. Safe for
// concurrent use.
func (e *Engine) RecordLocal(rank int, bytes int64) {
	if e.recorder != nil && rank != e.world.Rank && e.sameCluster(rank) {
		e.recorder.Inside(rank, bytes)
	}
}

func (e *Engine) closeRecord() error {
	if e.recorder == nil {
		return nil
	}
	return e.recorder.Close()
}
