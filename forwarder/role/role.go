// Package role has what the other end of a connection is to a forwarder, and how that may change.
package role

// Role is what a peer is to the forwarder:
//
//	Fresh ─its connection is there→ Stranger ─a Join→ Waiting ─the job starts→ Running
//	Stranger ─the Join of a rank that comes back→ Running
//	Stranger ─another forwarder shows a Join→ Bridging ─the connection is in use→ Running
//	Fresh ─dialled from here→ Introducing ─the other forwarder agrees→ Bridging
//	each but Running ─refused→ Leaving
type Role uint8

const (
	// Fresh: nothing has been said. Nothing may come.
	Fresh Role = iota

	// Stranger: the join exchange is under way. Join, Bridge and Half may come.
	Stranger

	// Waiting: a rank waits in a job that gathers. Pong may come.
	Waiting

	// Introducing: this forwarder has dialled another one, and shows it a rank's Join. Challenge,
	// Proof and Refuse may come.
	Introducing

	// Bridging: the job gathers over the connection to another forwarder, or the connection is not
	// in use yet (package bridge).
	Bridging

	// Running: the connection carries frames of a running job.
	Running

	// Leaving: the peer is not in a job and will not be. Its connection lingers; what comes is not
	// looked at.
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

// May reports whether a peer of role r may become one of role next.
func (r Role) May(next Role) bool { return legal[r]&(1<<next) != 0 }
