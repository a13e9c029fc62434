// Package action has the requests of a job's state machines (packages job and bridge) to the
// forwarder. It has no behaviour.
//
// A state machine returns the actions of one event in the order in which they must be carried out.
// It names connections and timers by number, so it holds no socket and no clock.
package action

import (
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// Conn is the number of a connection. The forwarder numbers connections from 1 in the order in
// which it accepts or dials them; 0 means no connection.
type Conn uint64

// Action is an operation that a job's state machine asks the forwarder to carry out, such as to
// send a frame or to set a timer.
type Action interface{ action() }

// Base is embedded in the type of each action, and gives it the method of the interface Action.
type Base struct{}

func (Base) action() {}

// Actions on a connection.
type (
	// Send sends a frame. Bytes that the link does not accept wait in the connection's queue.
	Send struct {
		Base
		Conn  Conn
		Frame []byte
	}

	// Finish queues the connection's last frame behind all others; reading goes on.
	Finish struct {
		Base
		Conn  Conn
		Frame []byte
	}

	// Close closes a connection over which both ends have sent Bye: at once if its queue is empty,
	// else when the queue is written and the other end closes it. It lingers until then.
	Close struct {
		Base
		Conn Conn
	}

	// Abort discards the connection's queue and sends a last frame. The connection lingers.
	Abort struct {
		Base
		Conn  Conn
		Frame []byte
	}

	// End closes a connection at once. The event of its end (job.Lost) reports Cause.
	End struct {
		Base
		Conn  Conn
		Cause error
	}
)

// Actions about time and the log.
type (
	// Arm starts a timer, or sets it to another time if it is armed. When it expires the state
	// machine gets its event once.
	Arm struct {
		Base
		Timer Timer
		After time.Duration
	}

	// Disarm stops a timer, so its event does not occur.
	Disarm struct {
		Base
		Timer Timer
	}

	// Log writes a line to the forwarder's log. The line also has the job's id or, if Conn is not
	// 0, the identity of that connection's other end.
	Log struct {
		Base
		Conn   Conn
		Level  zapcore.Level
		Text   string
		Fields []zap.Field
	}
)

// Timer identifies a timer of a job by its purpose and its object.
type Timer struct {
	Kind Kind
	// Of is the rank, cluster or forwarder that the timer belongs to; 0 for a timer of the whole
	// job.
	Of int
}

// Kind says what a timer is for. A job has at most one timer for each Kind and each value of
// Timer.Of.
type Kind uint8

// Kinds of timers.
const (
	Gathering Kind = iota // Gathering ends the job because not all ranks have joined in time.
	Notice                // Notice sends waiting ranks a text about the ranks and links that are missing.
	Doors                 // Doors closes the ports that the kernel has opened and ranks no longer need.
	Return                // Return ends the wait for rank Of, whose link is lost.
	Suspended             // Suspended ends a job whose cluster Of has been suspended for too long.

	// The timers of the bridge to forwarder Of.

	Large   // Large ends the wait for forwarder Of to answer the first large packet.
	Again   // Again dials the connections to forwarder Of that are missing.
	Measure // Measure looks at the use and the losses of the connections to forwarder Of.
	Cut     // Cut ends the wait for a new connection to forwarder Of.
)
