package job

import (
	"fmt"
	"slices"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/leidenzipper/zipper/forwarder/action"
	"github.com/leidenzipper/zipper/forwarder/bridge"
	"github.com/leidenzipper/zipper/handshake"
	"github.com/leidenzipper/zipper/internal/wire"
)

// State is the state of a job:
//
//	Gathering ─all are in→ Running
//	Gathering ─time-out, hopeless, or all have left→ Ended
//	Running ─abort, a rank or a bridge is lost, release→ Ending ─last link closed→ Ended
//	Running ─last link closed after Bye→ Ending → Ended
//	Ending ─last link closed, the kernel has ways of the job open→ Closing ─they are closed→ Ended
type State uint8

const (
	// Gathering: ranks join. Their frames are for the join exchange. The forwarder sends them
	// Notice, Refuse and Ping.
	Gathering State = iota

	// Running: frames between ranks are relayed. New links are accepted only from ranks that come
	// back, and for bridges (package bridge).
	Running

	// Ending: all ranks were sent Abort, or Bye if the job is released, or all have left. The links
	// linger, and nothing is relayed any more.
	Ending

	// Closing: the job has no links any more, and the kernel closes the ways that it has opened for
	// the job. Timers and launchers' reports have no effect any more.
	Closing

	// Ended: the job's id is free. A job that has run has no links any more; those of a job that
	// never ran may still linger.
	Ended
)

var stateNames = [...]string{"gathering", "running", "ending", "closing", "ended"}

func (s State) String() string { return stateNames[s] }

// legal[from] is the set of states that may follow.
var legal = [...]uint8{
	Gathering: 1<<Running | 1<<Ended,
	Running:   1 << Ending,
	Ending:    1<<Closing | 1<<Ended,
	Closing:   1 << Ended,
	Ended:     0,
}

// Config is the configuration of a job from its first Join on.
type Config struct {
	Here    int           // Here is this forwarder's index in the job's forwarders.
	User    string        // User is the user that the first Join's ticket names; empty if none was demanded.
	Timeout time.Duration // Timeout is the longest time for which the job waits for all its ranks to join.
	// Notice is the time from the last Join until waiting ranks are told which ranks are missing.
	Notice   time.Duration
	Classic  bool // Classic says that the job has the protocol of the original middleware.
	Ways     bool // Ways says that the kernel may forward connections between ranks, past this forwarder.
	Trunk    int  // Trunk is the number of bulk connections to another forwarder; 0: by the path.
	Stranger bool // Stranger says that the job gets no details of networks beyond this forwarder.
}

// core has the state that all parts of a job share: its facts, its state, and the results of
// Handle.
type core struct {
	cfg      Config
	id       string
	clusters []wire.Cluster
	// gather has the Joins of all ranks so far, and checks the Joins of ranks that reconnect.
	gather *handshake.Gather

	state  State
	dead   []Death // dead has the lost clusters, in the order of their losses.
	result result  // result is set with the state Ending, or Ended if the job never ran (finish).

	now    time.Time       // now is the time of the event that is being handled.
	out    []action.Action // out has the actions that the present call of Handle will return.
	queued []message       // queued has the events that bridges still have to handle.
	// wrong is the error of the first illegal transition in the present call of Handle; nil: none.
	wrong error
}

// result is the exit status with which a job has ended, and the reason.
type result struct {
	code   int32
	reason string // reason is why the job failed; empty if it did not.
}

// Death is the loss of a cluster.
type Death struct {
	Cluster int       // Cluster is the cluster's index in the layout.
	At      time.Time // At is the time at which this forwarder learned of the loss.
	Reason  string    // Reason is a clause for users that begins with the cluster.
}

// message is an event for the bridge to the forwarder with index zipper.
type message struct {
	zipper int
	event  bridge.Event
}

// to moves the job to the next state and reports whether that is a legal transition.
func (c *core) to(next State) bool {
	if legal[c.state]&(1<<next) == 0 {
		c.broken(fmt.Errorf("the forwarder cannot move the job from %v to %v", c.state, next))
		return false
	}
	c.log(zapcore.DebugLevel, "job", zap.Stringer("was", c.state), zap.Stringer("is", next))
	c.state = next
	return true
}

// finish moves a job that ends to the state next, with the result r. It reports whether that is a
// legal transition.
func (c *core) finish(next State, r result) bool {
	if !c.to(next) {
		return false
	}
	c.result = r
	return true
}

// broken records err, a defect of this package. The job ends once the present event has been
// handled.
func (c *core) broken(err error) {
	if c.wrong == nil {
		c.wrong = err
	}
}

func (c *core) do(a action.Action) { c.out = append(c.out, a) }

func (c *core) arm(t action.Timer, after time.Duration) { c.do(action.Arm{Timer: t, After: after}) }

func (c *core) disarm(t action.Timer) { c.do(action.Disarm{Timer: t}) }

func (c *core) log(level zapcore.Level, text string, fields ...zap.Field) {
	c.do(action.Log{Level: level, Text: text, Fields: fields})
}

// logOf writes a line to the log that names the other end of the connection conn.
func (c *core) logOf(conn action.Conn, level zapcore.Level, text string, fields ...zap.Field) {
	c.do(action.Log{Conn: conn, Level: level, Text: text, Fields: fields})
}

// cross queues an event for the bridge to the forwarder with index zipper. It is handled after the
// present event of the job.
func (c *core) cross(zipper int, e bridge.Event) { c.queued = append(c.queued, message{zipper, e}) }

// resumes reports whether ranks reopen lost links. They do in a job with one way between any two
// ranks, if it has patience and is not classic.
func (c *core) resumes() bool {
	return c.gather.Rails() == 1 && !c.cfg.Classic && c.gather.Patience() > 0
}

// survivesLoss reports whether the job survives the loss of a link, because its ranks retransmit
// the frames that were not acknowledged.
func (c *core) survivesLoss() bool { return c.gather.Rails() > 1 || c.resumes() }

// patience returns for how long the running job waits for a rank or a forwarder that is out of
// reach.
func (c *core) patience() time.Duration { return time.Duration(c.gather.Patience()) * time.Millisecond }

// outlives reports whether the job goes on when a cluster is lost.
func (c *core) outlives() bool { return c.gather.OutlivesClusters() }

// death returns how the cluster with that index was lost, or nil if it is not lost.
func (c *core) death(cluster int) *Death {
	for i := range c.dead {
		if c.dead[i].Cluster == cluster {
			return &c.dead[i]
		}
	}
	return nil
}

// alive reports whether the cluster of rank v is not lost.
func (c *core) alive(v uint32) bool {
	if len(c.dead) == 0 {
		return true
	}
	name, _ := c.place(v)
	return c.death(c.clusterIndex(name)) == nil
}

// place returns the name of a rank's cluster, and the rank's number in that cluster (native). rank
// is the number in the whole job, over all clusters.
func (c *core) place(rank uint32) (cluster string, native int) {
	return wire.Place(c.clusters, rank)
}

// clusterIndex returns the index of the cluster with a name, or -1 if the job has none of that
// name.
func (c *core) clusterIndex(name string) int {
	return slices.IndexFunc(c.clusters, func(o wire.Cluster) bool { return o.Name == name })
}

// rankOf returns the rank in the whole job, over all clusters, of the process that has sent a Join.
func (c *core) rankOf(join *wire.Join) uint32 {
	v := join.Rank
	for _, o := range c.clusters {
		if o.Name == join.Cluster {
			break
		}
		v += o.Size
	}
	return v
}

// frame returns the bytes of a frame of type t that is for the other end of a link rather than for
// a rank. body may be nil.
func frame(t wire.Type, body wire.Body) []byte { return wire.AppendFrame(nil, wire.Control(t), body) }

func abortFrame(code int32, rank uint32, reason string) []byte {
	return frame(wire.TypeAbort, &wire.Abort{Code: code, Rank: rank, Reason: reason, By: wire.Nobody})
}
