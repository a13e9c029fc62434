package bridge

import (
	"fmt"
	"slices"

	"go.uber.org/zap/zapcore"

	"github.com/leidenzipper/zipper/forwarder/action"
	"github.com/leidenzipper/zipper/forwarder/trunk"
	"github.com/leidenzipper/zipper/internal/wire"
)

// The first connection, while the job gathers. One end dials it (dialler.reach). The frames of the
// gathering are small, and a path may pass small packets and silently drop large ones. The job
// would start, and hang at its first large message. TCP forbids fragmentation on the way, so a Ping
// that fills packets is sent first (gather). If it is not answered the job is given up.

// entry accepts connections of a bridge: the first one, over which the job gathers, and further
// ones of a running job before they are in use.
type entry struct {
	*core
	conns *connections
	trunk *trunkLine
}

// gather makes the connection id the first one of the bridge, over which the two ends gather the
// job. offered says that the other end has dialled it.
func (e *entry) gather(id action.Conn, offered bool, link trunk.Link) {
	if !e.to(Gathering) {
		return
	}
	c := &conn{id: id, offered: offered, link: link}
	e.conns.use(c)
	e.pad(c, c.warming.Begin(e.now))
	e.arm(action.Large, LargeAnswer)
	e.log(zapcore.InfoLevel, "link to another forwarder")
	e.do(Linked{})
}

// unanswered gives the job up because the other end has not answered the first large packet in
// time.
func (e *entry) unanswered() {
	c := e.conns.first()
	if e.state != Gathering || !c.warming.Silent() {
		return
	}
	e.log(zapcore.ErrorLevel, "large packets do not reach another forwarder")
	size := ""
	if c.link.Packet > 0 {
		size = fmt.Sprintf(" (%d bytes of TCP's)", c.link.Packet)
	}
	e.do(GiveUp{Code: wire.RefuseTimeout,
		Reason: fmt.Sprintf("job %q: small packets from this forwarder reach the forwarder %s, "+
			"large ones%s do not: a device on the path drops them silently (an MTU black hole); on both hosts "+
			"lower the MTU of the interface there (ip link set dev NAME mtu 1400), or set sysctl net.ipv4.tcp_mtu_probing=1",
			e.Job, e.Address, size)})
}

// answered handles the other end's answer to a Ping over the connection id, which carries no frames
// of the running job yet.
func (e *entry) answered(id action.Conn, link trunk.Link) {
	c := e.conns.find(id)
	if c == nil {
		return
	}
	c.link = link
	e.pad(c, c.warming.Answered(e.now, link.Path, link.Known))
	if c.warming.Warm() && slices.Contains(e.conns.coming, c) && c.offered && c.number != 0 {
		e.trunk.admit(c)
	}
}

// warm sends packets over a connection of a running job, to open its TCP windows, if it is reserved
// for bursts and the path is long.
func (e *entry) warm(c *conn) {
	if c.number < trunk.Eager && c.link.Long() {
		e.pad(c, c.warming.Begin(e.now))
	}
}

// pad sends n Pings over a connection, each of which fills a packet.
func (e *entry) pad(c *conn, n int) {
	for range n {
		e.send(c, wire.TypePing, padding{})
	}
}

// padding is the body of a Ping that fills packets.
type padding struct{}

// Append appends the padding, zeros, to b.
func (padding) Append(b []byte) []byte { return append(b, make([]byte, wire.MaxPing)...) }

// introduced handles the other end's acceptance of the connection id, which this end has dialled.
func (e *entry) introduced(id action.Conn, link trunk.Link) {
	if e.state == Absent {
		e.gather(id, false, link)
		return
	}
	c := e.conns.find(id)
	switch {
	case c == nil || !e.Wanted():
		e.end(id, errNotWanted)
	case c.number == 0:
		e.restarted(c)
	default: // the other end's Ready follows
		c.link = link
		e.warm(c)
	}
}

// offered handles a connection that the other end has dialled. The first connection of the bridge
// gathers the job. A later one with number 0, unless the job still gathers, means that the other
// end was restarted. Any other carries frames of the job as soon as the job runs and the connection
// is warm; it need not be warm while the bridge is cut. A connection that is not wanted is closed.
func (e *entry) offered(id action.Conn, number int, link trunk.Link) {
	switch {
	case e.state == Absent:
		e.gather(id, true, link)
		return
	case e.state != Gathering && !e.Wanted():
		e.end(id, errNotWanted)
		return
	}
	c := &conn{id: id, number: number, offered: true, link: link}
	e.conns.addComing(c)
	if number == 0 && e.state != Gathering {
		e.restarted(c)
		return
	}
	e.warm(c)
	e.trunk.admit(c)
}

// refused handles the other end's refusal of the connection id. code and reason are those that the
// other end has given.
func (e *entry) refused(id action.Conn, code wire.RefuseCode, reason string) {
	e.end(id, refusedError(reason))
	c := e.conns.find(id)
	switch {
	case e.state == Absent:
		e.do(GiveUp{Code: code, Reason: fmt.Sprintf("the forwarder %s and this one do not agree: %s", e.Address, reason)})
	case c == nil || !e.Wanted() || e.conns.first() != nil:
	case code == wire.RefuseJob:
		e.trunk.giveUp("the forwarder " + e.Address + ": " + reason)
	case code == wire.RefuseTaken && e.bye.sent && c.number == 0:
		e.trunk.giveUp(reason)
	case code == wire.RefuseTaken: // after Bye, too: the other end may gather, and is told which ranks have left
		e.trunk.dialler.unknown(c.number)
	}
}

type refusedError string

func (e refusedError) Error() string { return string(e) }
