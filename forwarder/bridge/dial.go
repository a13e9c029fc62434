package bridge

import (
	"slices"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/leidenzipper/zipper/forwarder/action"
	"github.com/leidenzipper/zipper/forwarder/trunk"
)

// Dialling the connections that are missing, again after a while if they do not come. Over a long
// path Pings open the windows of new connections (package trunk), so that the job's first long
// message does not have to. Only then an end says that a connection is in use.

// maxConnections bounds the numbers of a trunk's connections: the first, those for bulk, and one
// that takes the first one's place.
const maxConnections = 2 + trunk.Most

// MayNumber reports whether a connection may have that number.
func MayNumber(n int) bool { return n >= 0 && n < maxConnections }

// dialler opens connections from this end.
type dialler struct {
	*core
	conns *connections
}

// reach dials the other end, for a job that gathers.
func (d *dialler) reach() {
	if d.state == Absent && d.Dials {
		d.do(Dial{Zipper: d.Zipper, Gathers: true})
	}
}

// instead reports whether this end dials a bridge that is cut though the other end is to.
func (d *dialler) instead() bool { return d.state == Cut && !d.Dials && d.conns.instead }

// extend dials the connections that are not there: over a long path those for bursts first, since
// others are cold, and would take their place.
func (d *dialler) extend() {
	if !d.Dials && !d.instead() || !d.Wanted() {
		return
	}
	t := d.conns
	missing := t.size.Connections() - len(t.inUse) - len(t.dialling)
	if !d.Dials {
		missing = 1 - len(t.dialling)
	}
	if t.ignorant {
		missing = 0
		if !t.dialling[0] {
			d.dial(0)
		}
	}
	for n := 1; n < maxConnections && missing > 0; n++ {
		if t.dialling[n] || slices.ContainsFunc(t.inUse, func(c *conn) bool { return c.number == n }) {
			continue
		}
		if n >= trunk.Eager && t.far && t.bursts() {
			return // use goes on
		}
		missing--
		d.dial(n)
	}
}

func (d *dialler) dial(number int) {
	d.conns.dialling[number] = true
	d.do(Dial{Zipper: d.Zipper, Number: number, Carried: d.conns.carried})
}

// dialled takes a connection that was dialled, unless it is not wanted any more.
func (d *dialler) dialled(id action.Conn, number int) {
	switch {
	case d.state == Absent:
		d.conns.first0 = id
	case d.Wanted():
		d.conns.comes(&conn{id: id, number: number})
	default:
		d.end(id, errNotWanted)
		return
	}
	d.do(Introduce{Conn: id, Zipper: d.Zipper, Number: number})
}

// notDialled goes on when a connection could not be opened.
func (d *dialler) notDialled(number int, why error) {
	if d.state != Absent {
		d.notThere(number, why)
	}
}

// notComing sees to a connection that has ended before it was in use.
func (d *dialler) notComing(id action.Conn, cause error) {
	t := d.conns
	switch c := t.find(id); {
	case c != nil:
		t.gone(c)
		d.notThere(c.number, cause)
	case d.state == Absent && id == t.first0:
		t.first0 = 0
		d.log(zapcore.WarnLevel, "a link to another forwarder is lost before it is in use", zap.Error(cause))
		d.arm(action.Again, trunk.Redial)
	}
}

// notThere goes on when a connection of a running job could not be opened: it is tried again.
func (d *dialler) notThere(number int, why error) {
	delete(d.conns.dialling, number)
	if !d.Wanted() {
		return
	}
	d.log(zapcore.WarnLevel, "no further connection to another forwarder", zap.Int("connection", number), zap.Error(why))
	pause := trunk.Redial
	if d.conns.first() != nil {
		pause = trunk.Retry // the job runs over the others
	}
	d.extendIn(pause)
}

// extendIn dials what is missing in a while.
func (d *dialler) extendIn(pause time.Duration) {
	switch {
	case !d.Wanted():
		return
	case d.instead():
		pause = max(pause, trunk.Instead)
	case !d.Dials:
		return
	}
	d.arm(action.Again, pause)
}

// again dials what is missing now.
func (d *dialler) again() {
	if d.state == Absent {
		d.reach()
		return
	}
	d.extend()
}
