package bridge

import (
	"errors"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/leidenzipper/zipper/forwarder/action"
	"github.com/leidenzipper/zipper/internal/wire"
)

// State is the state of a bridge:
//
//	Absent ─a connection is introduced→ Gathering ─the job runs→ Running
//	Running ─the last connection is lost→ Cut ─a connection is in use→ Running
//	each ─the job ends, or goes on without the bridge→ Over
type State uint8

const (
	// Absent means that the job gathers and no connection exists yet.
	Absent State = iota

	// Gathering means that the job gathers over the first connection, which carries Joins, Ready,
	// Notice, RailState, Refuse and Pings.
	Gathering

	// Running means that the job runs and at least one connection is in use.
	Running

	// Cut means that the job runs and no connection is in use.
	Cut

	// Over means that the job has ended, or goes on without the bridge. No further connection is
	// dialled or accepted.
	Over
)

var stateNames = [...]string{"absent", "gathering", "running", "cut", "over"}

func (s State) String() string { return stateNames[s] }

// legal[from] is the set of states that may follow.
var legal = [...]uint8{
	Absent:    1<<Gathering | 1<<Over,
	Gathering: 1<<Running | 1<<Over,
	Running:   1<<Cut | 1<<Over,
	Cut:       1<<Running | 1<<Over,
	Over:      0,
}

// Config describes a bridge: which two forwarders it links and how it behaves. It does not change.
type Config struct {
	Job     string // Job is the job's id.
	Zipper  int    // Zipper is the other end's index in the job's forwarders.
	Here    int    // Here is this forwarder's index.
	Address string // Address is the other end's address, as users know it.
	Dials   bool   // Dials says that this end, rather than the other one, opens the connections.
	// Fixed is the number of connections that carry bulk; 0 lets the path decide.
	Fixed int
	// Patience is the time for which a running job waits for a bridge that is cut.
	Patience time.Duration
	// SurvivesLoss says that a running job survives the loss of a connection. Resumes says that the
	// job has no other way to the ranks behind the bridge.
	SurvivesLoss, Resumes bool
}

// core has the state that all parts of a bridge share, and the results of Handle.
type core struct {
	Config
	state State
	bye   farewell
	now   time.Time       // now is the time of the event that is being handled.
	out   []action.Action // out has the actions that the present call of Handle will return.
	wrong error           // wrong is the error of an illegal transition in the present call of Handle; nil: none.
}

// Remaining returns the part of a job's patience that remains after a silence. The patience begins
// when the other end was last heard, rather than when its silence is noticed. Unless the patience
// is shorter, leastRemaining is the least part, in which the other end can reconnect.
func Remaining(patience, silent time.Duration) time.Duration {
	return max(patience-silent, min(patience, leastRemaining))
}

// farewell records which Byes have been sent and received over a bridge.
type farewell struct {
	sent     bool // sent says that this end has sent Bye over all connections.
	begun    bool // begun says that the other end has sent Bye over one connection.
	complete bool // complete says that the other end has sent Bye over all connections in use.
}

// to moves the bridge to the next state and reports whether that is a legal transition.
func (b *core) to(next State) bool {
	if legal[b.state]&(1<<next) == 0 {
		b.wrong = &IllegalError{b.state, next}
		return false
	}
	b.state = next
	return true
}

// IllegalError is the error that a bridge was to move from state From to state To although no such
// transition exists. It is a defect of this package.
type IllegalError struct{ From, To State }

func (e *IllegalError) Error() string {
	return "the link to a forwarder goes from " + e.From.String() + " to " + e.To.String()
}

// Wanted reports whether the bridge needs connections: frames of the job, or at least this end's
// Bye, may still have to go over it.
func (b *core) Wanted() bool {
	return (b.state == Running || b.state == Cut) && !(b.bye.sent && b.bye.begun)
}

func (b *core) do(a action.Action) { b.out = append(b.out, a) }

func (b *core) send(c *conn, t wire.Type, body wire.Body) {
	b.do(action.Send{Conn: c.id, Frame: wire.AppendFrame(nil, wire.Control(t), body)})
}

func (b *core) end(c action.Conn, cause error) { b.do(action.End{Conn: c, Cause: cause}) }

func (b *core) timer(k action.Kind) action.Timer { return action.Timer{Kind: k, Of: b.Zipper} }

func (b *core) arm(k action.Kind, after time.Duration) {
	b.do(action.Arm{Timer: b.timer(k), After: after})
}

func (b *core) disarm(k action.Kind) { b.do(action.Disarm{Timer: b.timer(k)}) }

func (b *core) log(level zapcore.Level, text string, fields ...zap.Field) {
	b.do(action.Log{Level: level, Text: text, Fields: append(fields, zap.String("forwarder", b.Address))})
}

var errNotWanted = errors.New("the connection is no longer needed")
