package bridge

import (
	"github.com/leidenzipper/zipper/forwarder/action"
	"github.com/leidenzipper/zipper/internal/wire"
)

// parting ends a bridge by Bye from both ends over each connection. An end says Bye when all ranks
// that could send frames over the bridge from there have left.
type parting struct {
	*core
	conns *connections
}

// sayAll says Bye over all connections.
func (p *parting) sayAll() {
	p.bye.sent = true
	for _, c := range p.conns.inUse {
		p.say(c)
	}
}

// say says Bye on one connection.
func (p *parting) say(c *conn) {
	p.do(action.Finish{Conn: c.id, Frame: wire.AppendFrame(nil, wire.Control(wire.TypeBye), nil)})
	if c.byeCame {
		p.do(action.Close{Conn: c.id})
	}
}

// came handles the other end's Bye over a connection.
func (p *parting) came(id action.Conn) {
	c := p.conns.find(id)
	if c == nil {
		return
	}
	c.byeCame, p.bye.begun = true, true
	if !p.bye.complete && p.conns.byesCame() {
		p.bye.complete = true
		p.do(AllLeft{})
	}
	if p.bye.sent {
		p.do(action.Close{Conn: id})
	}
}
