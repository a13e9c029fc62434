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
	inUse  []*conn      // inUse are the first, then those for bulk only; none: the bridge is cut.
	coming []*conn      // coming are not in use yet.
	losses trunk.Losses // losses notes which connections lose packets.
	lost   int          // lost counts the connections in use that were lost.
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

// byesCame reports whether Bye has come over all connections that there are.
func (t *connections) byesCame() bool {
	return !slices.ContainsFunc(t.inUse, func(c *conn) bool { return !c.byeCame })
}

// comes takes a connection that is not in use yet.
func (t *connections) comes(c *conn) { t.coming = append(t.coming, c) }

// gone takes a connection out of those that come.
func (t *connections) gone(c *conn) { t.coming = without(t.coming, c) }

// use puts a connection behind those in use.
func (t *connections) use(c *conn) { t.inUse = append(slices.Clone(t.inUse), c) }

// drop takes a connection out of those in use and returns it, and whether it was the first one;
// nil: it is not in use.
func (t *connections) drop(id action.Conn) (c *conn, first bool) {
	i := slices.IndexFunc(t.inUse, func(c *conn) bool { return c.id == id })
	if i < 0 {
		return nil, false
	}
	c = t.inUse[i]
	t.inUse = slices.Delete(slices.Clone(t.inUse), i, i+1)
	return c, i == 0
}

// restart drops all connections but c, which is not in use yet, and returns them. Those that were
// in use are lost.
func (t *connections) restart(c *conn) (coming, inUse []*conn) {
	coming, inUse = without(t.coming, c), t.inUse
	t.coming, t.inUse = []*conn{c}, nil
	t.lost += len(inUse)
	return coming, inUse
}

// without returns list without c.
func without(list []*conn, c *conn) []*conn {
	return slices.DeleteFunc(slices.Clone(list), func(o *conn) bool { return o == c })
}
