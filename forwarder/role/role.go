// Package role has the role of a connection's other end for a forwarder, and its legal changes.
package role

// Role is the role of a peer for the forwarder:
//
//	Fresh ─its connection is there→ Stranger ─a Join→ Waiting ─the job starts→ Running
//	Stranger ─the Join of a rank that comes back→ Running
//	Stranger ─another forwarder shows a Join→ Bridging ─the connection is in use→ Running
//	Fresh ─dialled from here→ Introducing ─the other forwarder agrees→ Bridging
//	each but Running ─refused→ Leaving
type Role uint8

const (
	// Fresh means that no frame has been exchanged. No frame is accepted.
	Fresh Role = iota

	// Stranger means that the join exchange is in progress. Join, Bridge, Half and Refuse are
	// accepted.
	Stranger

	// Waiting means that a rank waits in a job that gathers. Pong and Refuse are accepted.
	Waiting

	// Introducing means that this forwarder has dialled another one, and shows it a rank's Join.
	// Challenge, Proof and Refuse are accepted.
	Introducing

	// Bridging means that the job gathers over the connection to another forwarder, or that the
	// connection is not in use yet (package bridge).
	Bridging

	// Running means that the connection carries frames of a running job.
	Running

	// Leaving means that the peer was refused, has been answered, or has closed its connection: it
	// takes part in no job. Its connection lingers; its input is ignored.
	Leaving
)

var names = [...]string{"fresh", "stranger", "waiting", "introducing", "bridging", "running", "leaving"}

func (r Role) String() string { return names[r] }

// legal[from] is the set of roles that may follow.
var legal = [...]uint8{
	Fresh:       1<<Stranger | 1<<Introducing | 1<<Leaving,
	Stranger:    1<<Waiting | 1<<Bridging | 1<<Running | 1<<Leaving,
	Waiting:     1<<Running | 1<<Leaving,
	Introducing: 1<<Bridging | 1<<Leaving,
	Bridging:    1<<Running | 1<<Leaving,
	Running:     0,
	Leaving:     0,
}

// May reports whether a peer of role r may take the role next.
func (r Role) May(next Role) bool { return legal[r]&(1<<next) != 0 }
