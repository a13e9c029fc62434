package bridge

import (
	"slices"

	"github.com/leidenzipper/zipper/forwarder/action"
	"github.com/leidenzipper/zipper/forwarder/trunk"
)

// conn is one connection of a bridge.
type conn struct {
	id      action.Conn
	number  int           // number is the connection's in the trunk; 0 is that of the gathering.
	offered bool          // offered says that the other end has dialled it.
	byeCame bool          // byeCame says that the other end has said Bye over it.
	warming trunk.Warming // warming opens its windows before it is in use.
	link    trunk.Link    // link is its path at the last event.
}

// connections are a bridge's.
type connections struct {
	inUse    []*conn      // inUse are the first, then those for bulk only; none: the bridge is cut.
	coming   []*conn      // coming are not in use yet.
	dialling map[int]bool // dialling has the numbers of those that are being opened from here.
	size     trunk.Size   // size is how many there are to be.
	losses   trunk.Losses // losses notes which connections lose packets.
	far      bool         // far says that the path is a long one.
	carried  bool         // carried says that commands open them.
	instead  bool         // instead says that this end may dial, too, when the bridge is cut.
	ignorant bool         // ignorant says that the other end does not know the job, and is asked to gather it.
	lost     int          // lost counts the connections in use that were lost.
	first0   action.Conn  // first0 is being introduced while the job gathers; 0: none is.
}

func (t *connections) first() *conn {
	if len(t.inUse) == 0 {
		return nil
	}
	return t.inUse[0]
}

// find returns the connection with that number of the forwarder's, among those in use and those
// that come; nil: there is none.
func (t *connections) find(id action.Conn) *conn {
	for _, list := range [][]*conn{t.inUse, t.coming} {
		if i := slices.IndexFunc(list, func(c *conn) bool { return c.id == id }); i >= 0 {
			return list[i]
		}
	}
	return nil
}

// bursts reports whether one of those for bursts is being dialled.
func (t *connections) bursts() bool {
	for n := range t.dialling {
		if n > 0 && n < trunk.Eager {
			return true
		}
	}
	return false
}

// byesCame reports whether Bye has come over all connections that there are.
func (t *connections) byesCame() bool {
	return !slices.ContainsFunc(t.inUse, func(c *conn) bool { return !c.byeCame })
}

// comes takes a connection that is not in use yet.
func (t *connections) comes(c *conn) { t.coming = append(t.coming, c) }

// gone takes a connection out of those that come.
func (t *connections) gone(c *conn) { t.coming = without(t.coming, c) }

// without returns list without c.
func without(list []*conn, c *conn) []*conn {
	return slices.DeleteFunc(slices.Clone(list), func(o *conn) bool { return o == c })
}
