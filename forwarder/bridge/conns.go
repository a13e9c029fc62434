package bridge

import (
	"slices"

	"github.com/leidenzipper/zipper/forwarder/action"
	"github.com/leidenzipper/zipper/forwarder/trunk"
)

// conn is one of the connections between the two forwarders of a bridge.
type conn struct {
	id action.Conn
	// number is the connection's number in the bridge; 0 is the one over which the job gathers.
	number      int
	offered     bool          // offered says that the other end has dialled the connection, rather than this end.
	byeReceived bool          // byeReceived says that the other end has sent Bye over the connection.
	warming     trunk.Warming // warming opens the TCP windows before the connection is in use.
	// link has the properties of the connection, such as its round trip, as known at the last
	// event.
	link trunk.Link
}

// connections are the connections of a bridge, in use or not yet.
type connections struct {
	// inUse has the connection for all frames, then those for bulk frames only. Empty: the bridge
	// is cut.
	inUse []*conn
	// coming has the connections that are open and do not carry frames of the job yet.
	coming []*conn
	// losses records which connections in use had lost packets at the last measurement.
	losses trunk.Losses
	lost   int // lost is the number of connections that have been lost while they were in use.
}

// first returns the connection that carries all frames, or all but bulk ones if others are in use.
// It returns nil if no connection is in use.
func (t *connections) first() *conn {
	if len(t.inUse) == 0 {
		return nil
	}
	return t.inUse[0]
}

// find returns the connection with that id, in use or not, or nil if there is none.
func (t *connections) find(id action.Conn) *conn {
	for _, list := range [][]*conn{t.inUse, t.coming} {
		if i := slices.IndexFunc(list, func(c *conn) bool { return c.id == id }); i >= 0 {
			return list[i]
		}
	}
	return nil
}

// taken reports whether a connection in use replaces one with a number: it has that number, or the
// number is 0, which is for an other end that does not run the job.
func (t *connections) taken(number int) bool {
	return slices.ContainsFunc(t.inUse, func(c *conn) bool { return number == 0 || c.number == number })
}

// byeComplete reports whether the other end has said Bye over all connections in use.
func (t *connections) byeComplete() bool {
	return !slices.ContainsFunc(t.inUse, func(c *conn) bool { return !c.byeReceived })
}

// addComing adds a connection that is open but does not carry frames of the job yet.
func (t *connections) addComing(c *conn) { t.coming = append(t.coming, c) }

// removeComing removes a connection from those that do not carry frames of the job yet.
func (t *connections) removeComing(c *conn) { t.coming = without(t.coming, c) }

// use appends a connection to those that carry frames of the job.
func (t *connections) use(c *conn) { t.inUse = append(slices.Clone(t.inUse), c) }

// drop removes a connection from those that carry frames of the job. It returns the connection, or
// nil if it is not one of them, and whether it was the first one.
func (t *connections) drop(id action.Conn) (c *conn, first bool) {
	i := slices.IndexFunc(t.inUse, func(c *conn) bool { return c.id == id })
	if i < 0 {
		return nil, false
	}
	c = t.inUse[i]
	t.inUse = slices.Delete(slices.Clone(t.inUse), i, i+1)
	return c, i == 0
}

// restart removes and returns all connections but c, which is not in use yet. The connections that
// were in use count as lost.
func (t *connections) restart(c *conn) (coming, inUse []*conn) {
	coming, inUse = without(t.coming, c), t.inUse
	t.coming, t.inUse = []*conn{c}, nil
	t.lost += len(inUse)
	return coming, inUse
}

// without returns a copy of list that lacks c.
func without(list []*conn, c *conn) []*conn {
	return slices.DeleteFunc(slices.Clone(list), func(o *conn) bool { return o == c })
}
