package bridge

import (
	"github.com/leidenzipper/zipper/forwarder/action"
	"github.com/leidenzipper/zipper/internal/wire"
)

// parting ends a bridge by an exchange of Bye over each of its connections. An end sends Bye when
// all ranks that could send frames over the bridge from there have left.
type parting struct {
	*core
	conns *connections
}

// sendAll sends Bye to the other end over all connections in use, and notes that this end has done
// so.
func (p *parting) sendAll() {
	p.bye.sent = true
	for _, c := range p.conns.inUse {
		p.say(c)
	}
}

// say sends Bye to the other end over one connection, and closes that connection if the other end
// has sent its Bye over it.
func (p *parting) say(c *conn) {
	p.do(action.Finish{Conn: c.id, Frame: wire.AppendFrame(nil, wire.Control(wire.TypeBye), nil)})
	if c.byeReceived {
		p.do(action.Close{Conn: c.id})
	}
}

// byeArrived handles a Bye from the other end, which arrived over the connection id.
func (p *parting) byeArrived(id action.Conn) {
	c := p.conns.find(id)
	if c == nil {
		return
	}
	c.byeReceived, p.bye.begun = true, true
	if !p.bye.complete && p.conns.byeComplete() {
		p.bye.complete = true
		p.do(AllLeft{})
	}
	if p.bye.sent {
		p.do(action.Close{Conn: id})
	}
}
