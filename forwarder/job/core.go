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

// State is where a job is in its life:
//
//	Gathering ─all are in→ Ready ─the kernel's ways are open, or none are wanted→ Running
//	Ready ─a rank leaves→ Gathering
//	Gathering ─time-out, hopeless, or all have left→ Ended
//	Running ─abort, a rank or a bridge is lost, release→ Ending ─last link closed→ Ended
//	Running ─last link closed after Bye→ Ending → Ended
//	Ending ─last link closed, the kernel has ways of the job open→ Closing ─they are closed→ Ended
type State uint8

const (
	// Gathering: ranks join. What they send is for the join exchange; they are sent Notice, Refuse
	// and Ping.
	Gathering State = iota

	// Ready: all are in, and do not know it yet. As Gathering, but that no more can join.
	Ready

	// Running: frames between ranks are relayed, and new links are taken in only of ranks that come
	// back.
	Running

	// Ending: Abort was sent to all ranks, or (release) Bye, or all have left. The links linger:
	// nothing is relayed any more.
	Ending

	// Closing: the job has no links any more, and the kernel takes back the ways that it has opened
	// for it. Timers and launchers have no say any more.
	Closing

	// Ended: no links any more. Its id is free.
	Ended
)

var stateNames = [...]string{"gathering", "ready", "running", "ending", "closing", "ended"}

func (s State) String() string { return stateNames[s] }

// legal[from] is the set of states that may follow.
var legal = [...]uint8{
	Gathering: 1<<Ready | 1<<Ended,
	Ready:     1<<Running | 1<<Gathering,
	Running:   1 << Ending,
	Ending:    1<<Closing | 1<<Ended,
	Closing:   1 << Ended,
	Ended:     0,
}

// Config is what holds for a job from its first Join on.
type Config struct {
	Here     int           // Here is this forwarder's index in the job's forwarders.
	User     string        // User is the user that the first Join's ticket names; empty: none was demanded.
	Timeout  time.Duration // Timeout is how long the job gathers at most.
	Notice   time.Duration // Notice is how long after the last Join ranks are told what is missing.
	Classic  bool          // Classic says that frames are relayed by the protocol of the original middleware.
	Ways     bool          // Ways says that the kernel may pass connections on.
	Trunk    int           // Trunk is the number of connections for bulk to another forwarder; 0: the path decides.
	Stranger bool          // Stranger says that the job is told nothing of what is beyond other forwarders.
}

// core is what all parts of a job share: its facts, its state, and what Handle returns.
type core struct {
	cfg      Config
	id       string
	clusters []wire.Cluster
	gather   *handshake.Gather // gather has the Joins, also those of ranks that come back.

	state  State
	result result // result is set with the first state in which nothing is relayed (finish).

	now    time.Time       // now is the time of the event.
	out    []action.Action // out is what Handle returns.
	queued []message       // queued are the events for bridges.
	wrong  error           // wrong is the first illegal transition of the event.
}

// result is how a job has ended.
type result struct {
	code   int32
	reason string // reason is why it failed; empty: it has not.
}

// message is an event for the bridge to a forwarder.
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

// finish is to for a job that ends: r says how.
func (c *core) finish(next State, r result) bool {
	if !c.to(next) {
		return false
	}
	c.result = r
	return true
}

// broken notes a defect, which ends the job after the event.
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

// logOf is log for what a connection's other end has done.
func (c *core) logOf(conn action.Conn, level zapcore.Level, text string, fields ...zap.Field) {
	c.do(action.Log{Conn: conn, Level: level, Text: text, Fields: fields})
}

// cross gives a bridge an event, after what is being handled now.
func (c *core) cross(zipper int, e bridge.Event) { c.queued = append(c.queued, message{zipper, e}) }

// resumes reports whether a link of a job with one way between any two ranks is opened again when
// it is lost.
func (c *core) resumes() bool {
	return c.gather.Rails() == 1 && !c.cfg.Classic && c.gather.Patience() > 0
}

// goesOn reports whether the job outlives the loss of a link: its ranks send again what they do not
// know to have arrived.
func (c *core) goesOn() bool { return c.gather.Rails() > 1 || c.resumes() }

// patience is how long what is out of reach is waited for.
func (c *core) patience() time.Duration { return time.Duration(c.gather.Patience()) * time.Millisecond }

// place says which cluster and native rank a virtual rank is.
func (c *core) place(rank uint32) (cluster string, native int) {
	return wire.Place(c.clusters, rank)
}

// clusterIndex finds a cluster; -1: the job has none of that name.
func (c *core) clusterIndex(name string) int {
	return slices.IndexFunc(c.clusters, func(o wire.Cluster) bool { return o.Name == name })
}

// rankOf is the virtual rank of a Join.
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

// refusal is why a connection cannot be in the job.
func refusal(code wire.RefuseCode, format string, args ...any) *handshake.Refused {
	return &handshake.Refused{Code: code, Reason: fmt.Sprintf(format, args...)}
}

// frame returns a frame between the two ends of a link; body may be nil.
func frame(t wire.Type, body wire.Body) []byte { return wire.AppendFrame(nil, wire.Control(t), body) }

func abortFrame(code int32, rank uint32, reason string) []byte {
	return frame(wire.TypeAbort, &wire.Abort{Code: code, Rank: rank, Reason: reason, By: wire.Nobody})
}
