// Package action has what the state machines of a job (packages job and bridge) ask the forwarder
// to do. It has no behaviour.
//
// A state machine returns the actions of one event in the order in which they are to be carried
// out. It names connections and timers by number, so that it holds no socket and no clock.
package action

import (
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// Conn is the number of a connection. The forwarder numbers connections from 1 in the order in
// which it takes them; 0 is no connection.
type Conn uint64

// Action is something that the forwarder has to do for a job.
type Action interface{ action() }

// Base makes the type that embeds it an Action.
type Base struct{}

func (Base) action() {}

// Actions on a connection.
type (
	// Send sends a frame. Bytes that the link does not take wait in the connection's queue.
	Send struct {
		Base
		Conn  Conn
		Frame []byte
	}

	// Finish sends the connection's last frame after what is queued; the connection is read on.
	Finish struct {
		Base
		Conn  Conn
		Frame []byte
	}

	// Close closes a connection over which both ends have said Bye, when its queue is empty.
	Close struct {
		Base
		Conn Conn
	}

	// Abort sends a last frame in place of what is queued, and the connection lingers.
	Abort struct {
		Base
		Conn  Conn
		Frame []byte
	}

	// End closes a connection at once. Cause is what its Ended event reports.
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

	// Disarm stops a timer. Its event does not come any more.
	Disarm struct {
		Base
		Timer Timer
	}

	// Log writes a line to the forwarder's log. The job's id is added to it or, if Conn is not 0,
	// what is known of that connection's other end.
	Log struct {
		Base
		Conn   Conn
		Level  zapcore.Level
		Text   string
		Fields []zap.Field
	}
)

// Timer names a timer of a job.
type Timer struct {
	Kind Kind
	Of   int // Of is the rank, cluster or forwarder that the timer belongs to; 0 where there is one.
}

// Kind is what a timer is for.
type Kind uint8

// Kinds of timers.
const (
	Gathering Kind = iota // Gathering ends the gathering.
	Notice                // Notice tells the ranks that wait what is missing.
	Opening               // Opening starts the job without the ways that the kernel was asked to open.
	Return                // Return ends the wait for rank Of, whose link is lost.
	Suspended             // Suspended ends a job whose cluster Of stands still.

	// The timers of the bridge to forwarder Of.

	Large   // Large ends the wait for the answer to the first large packet.
	Again   // Again dials the connections that are missing.
	Measure // Measure looks at how the connections are used.
	Cut     // Cut ends the wait for a bridge without connections.
)
