package bridge

import (
	"slices"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/leidenzipper/zipper/forwarder/action"
	"github.com/leidenzipper/zipper/forwarder/trunk"
)

// Missing connections are dialled, and redialled after a pause. Over a long path, Pings open the
// TCP windows of a new connection (package trunk), so that the job's first long message does not
// have to. Only then does an end declare the connection in use.

// maxConnections bounds the numbers of a trunk's connections: the first, those for bulk, and one
// that takes the first one's place.
const maxConnections = 2 + trunk.Most

// ValidNumber reports whether n is in the range of numbers that a bridge's connections may have.
func ValidNumber(n int) bool { return n >= 0 && n < maxConnections }

// dialler decides when this end opens connections to the other end of the bridge, and retries.
type dialler struct {
	*core
	conns    *connections
	dialling map[int]bool // dialling has the numbers of the connections that are being opened.
	size     trunk.Size   // size is the number of connections that the bridge should have in use.
	long     bool         // long says that the path to the other end is known to have a long round trip.
	// carried says that the connections go through a command, such as ssh, rather than a socket.
	carried bool
	// bothDial says that, while the bridge is cut, both ends may dial rather than only the usual
	// one.
	bothDial bool
	// peerRestarted says that the other end, which was restarted, does not know the job and must
	// gather it.
	peerRestarted bool
	early         action.Conn // early is the connection that is being introduced while the job gathers; 0: none.
}

// reach dials the first connection to the other end, for a job that gathers.
func (d *dialler) reach() {
	if d.state == Absent && d.Dials {
		d.do(Dial{Zipper: d.Zipper, Gathers: true})
	}
}

// begin decides by the path of the first connection how many connections the running job has, and
// dials them. bothDial says that both ends may dial when the bridge is cut.
func (d *dialler) begin(link trunk.Link, bothDial bool) {
	d.long, d.bothDial, d.dialling = link.Long(), bothDial, map[int]bool{}
	if !d.Dials {
		return
	}
	fixed := d.Fixed
	if d.carried = link.Carried; d.carried && fixed == 0 { // a carried path is taken for a long one
		fixed = trunk.First
	}
	d.size = trunk.New(link.Path, link.Known, fixed)
	d.extend()
}

// grow dials more connections if those for bulk had to wait for room in the send buffers. bulk has
// their paths by number.
func (d *dialler) grow(bulk map[int]trunk.Path) {
	if d.size.Grow(bulk) {
		d.extend()
	}
}

// dialsForPeer reports whether this end dials because the bridge is cut, although usually the other
// end dials.
func (d *dialler) dialsForPeer() bool { return d.state == Cut && !d.Dials && d.bothDial }

// extend dials the missing connections. Over a long path it dials those for bursts first, because
// other connections are cold and would take their place.
func (d *dialler) extend() {
	if !d.Dials && !d.dialsForPeer() || !d.Wanted() {
		return
	}
	t := d.conns
	missing := d.size.Connections() - len(t.inUse) - len(d.dialling)
	if !d.Dials {
		missing = 1 - len(d.dialling)
	}
	if d.peerRestarted {
		missing = 0
		if !d.dialling[0] {
			d.dial(0)
		}
	}
	for n := 1; n < maxConnections && missing > 0; n++ {
		if d.dialling[n] || slices.ContainsFunc(t.inUse, func(c *conn) bool { return c.number == n }) {
			continue
		}
		if n >= trunk.Eager && d.long && d.bursts() {
			return // use dials the rest
		}
		missing--
		d.dial(n)
	}
}

// dial asks the forwarder to open the connection with a number to the other end.
func (d *dialler) dial(number int) {
	d.dialling[number] = true
	d.do(Dial{Zipper: d.Zipper, Number: number, Carried: d.carried})
}

// bursts reports whether one of the connections that are reserved for bursts of bulk frames is
// being dialled.
func (d *dialler) bursts() bool {
	for n := range d.dialling {
		if n > 0 && n < trunk.Eager {
			return true
		}
	}
	return false
}

// used records that a connection is in use. Number 0 means that the other end has gathered the job.
func (d *dialler) used(c *conn) {
	d.settled(c)
	d.peerRestarted = d.peerRestarted && c.number != 0
}

// settled records that a connection is in use, or will not be. A connection that the other end has
// dialled says nothing about a Dial of the same number at this end.
func (d *dialler) settled(c *conn) {
	if !c.offered {
		delete(d.dialling, c.number)
	}
}

// unknown records that the other end has refused the connection with a number because it does not
// know the job. The next connection asks it to gather the job; after a refusal of number 0 it
// gathers already.
func (d *dialler) unknown(number int) { d.peerRestarted = number != 0 }

// dialled handles the success of a Dial: it adds the connection id, or closes the connection if it
// is not wanted any more, or one that the other end has dialled meanwhile has its place.
func (d *dialler) dialled(id action.Conn, number int) {
	switch {
	case d.state == Absent:
		d.early = id
	case d.Wanted() && d.conns.taken(number):
		delete(d.dialling, number)
		d.end(id, errNotWanted)
		return
	case d.Wanted():
		d.conns.addComing(&conn{id: id, number: number})
	default:
		d.end(id, errNotWanted)
		return
	}
	d.do(Introduce{Conn: id, Zipper: d.Zipper, Number: number})
}

// dialFailed handles the failure of the Dial of the connection with a number; why is its error.
func (d *dialler) dialFailed(number int, why error) {
	if d.state != Absent {
		delete(d.dialling, number)
		d.openFailed(number, why)
	}
}

// closedEarly handles the end, for the reason cause, of the connection id, which was not in use
// yet.
func (d *dialler) closedEarly(id action.Conn, cause error) {
	t := d.conns
	switch c := t.find(id); {
	case c != nil:
		t.removeComing(c)
		d.settled(c)
		d.openFailed(c.number, cause)
	case d.state == Absent && id == d.early:
		d.early = 0
		d.log(zapcore.WarnLevel, "a link to another forwarder is lost before it is in use", zap.Error(cause))
		d.arm(action.Again, trunk.Redial)
	}
}

// openFailed handles that the connection with a number of a running job could not be opened, for
// the reason why: it is dialled again after a pause.
func (d *dialler) openFailed(number int, why error) {
	if !d.Wanted() {
		return
	}
	d.log(zapcore.WarnLevel, "no further connection to another forwarder", zap.Int("connection", number), zap.Error(why))
	pause := trunk.Redial
	if d.conns.first() != nil {
		pause = trunk.Retry // the job runs over the other connections
	}
	d.extendIn(pause)
}

// extendIn sets the timer after whose pause the missing connections are dialled.
func (d *dialler) extendIn(pause time.Duration) {
	switch {
	case !d.Wanted():
		return
	case d.dialsForPeer():
		pause = max(pause, trunk.DialForPeer)
	case !d.Dials:
		return
	}
	d.arm(action.Again, pause)
}

// again dials the missing connections, because the pause that extendIn began is over.
func (d *dialler) again() {
	if d.state == Absent {
		d.reach()
		return
	}
	d.extend()
}
