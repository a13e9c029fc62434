package monitor

import (
	"net"
	"net/http"
	"slices"
	"sync"
)

// conns bounds the connections of the status address. Anyone who reaches that address may open
// connections, and each takes a descriptor which a rank may need. When there are too many, one is
// closed: the oldest that has no request, or else the oldest. So a client that asks is answered
// while others keep connections open. Safe for concurrent use.
type conns struct {
	limit int // the maximum number of connections at a time

	mu   sync.Mutex
	list []*client // the open connections, oldest first
}

// client is one open connection to the status address.
type client struct {
	conn   net.Conn
	asking bool // Its request is being read or answered.
}

// changed is an http.Server's ConnState: it counts connections, and closes one if a new one is too
// many.
func (c *conns) changed(conn net.Conn, state http.ConnState) {
	c.mu.Lock()
	defer c.mu.Unlock()
	at := slices.IndexFunc(c.list, func(k *client) bool { return k.conn == conn })
	switch {
	case state == http.StateNew:
		if len(c.list) >= c.limit {
			c.evict()
		}
		c.list = append(c.list, &client{conn: conn})
	case at < 0: // It was evicted.
	case state == http.StateClosed || state == http.StateHijacked:
		c.list = slices.Delete(c.list, at, at+1)
	default:
		c.list[at].asking = state == http.StateActive
	}
}

// evict closes the connection that a new one displaces: the oldest without a request, or else the
// oldest. With mu.
func (c *conns) evict() {
	at := max(0, slices.IndexFunc(c.list, func(k *client) bool { return !k.asking }))
	c.list[at].conn.Close()
	c.list = slices.Delete(c.list, at, at+1)
}
