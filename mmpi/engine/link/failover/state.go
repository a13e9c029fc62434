package failover

// State is the state of a rail.
//
//	Down ─Redial→ Dialing ─Up→ Up                  Down ─Up, the other end has dialed→ Up
//	Dialing ─refused, or too late→ Down
//	Up ─lost→ Down      Up ─Bye sent→ ByeSent ─ByeAck→ Closed      Up ─Bye of the other process→ Leaving
//	ByeSent ─lost→ Down, to send Bye again            Leaving ─lost→ Closed
//	any ─end of the job→ Closed
type State uint8

// States of a rail.
const (
	// Down has no link, and this end opens none. Nothing is read or written; frames take other
	// rails.
	Down State = iota
	// Dialing is Down while a goroutine tries to open the link.
	Dialing
	// Up carries frames in both directions.
	Up
	// ByeSent awaits the ByeAck: the rail still reads and writes, but sends no pings.
	ByeSent
	// Leaving is a direct rail whose other process has finished. It takes no new frames, and its
	// link is not opened again.
	Leaving
	// Closed has finished: nothing is read. Queued frames still go out while there is a link.
	Closed
)

var stateNames = [...]string{"down", "dialling", "up", "byeSent", "leaving", "closed"}

// String returns the name of the state in traces.
func (s State) String() string { return stateNames[s] }

// legal has, for each state, the set of states that may follow it: bit s stands for state s.
var legal = [...]uint8{
	Down:    1<<Dialing | 1<<Up | 1<<Closed,
	Dialing: 1<<Up | 1<<Down | 1<<Closed,
	Up:      1<<Down | 1<<ByeSent | 1<<Leaving | 1<<Closed,
	ByeSent: 1<<Down | 1<<Closed,
	Leaving: 1 << Closed,
	Closed:  1 << Closed,
}
