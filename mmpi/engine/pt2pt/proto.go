package pt2pt

import (
	"errors"
	"fmt"

	"github.com/leidenzipper/zipper/mmpi/engine/fault"
	"github.com/leidenzipper/zipper/mmpi/engine/link"
	"github.com/leidenzipper/zipper/wire"
)

// proto is what links see of the endpoint (link.Upper). A frame comes here when its turn has come:
//
//  1. Eager: it is matched; its payload goes into the receive, or into a buffer until one comes
//     (eager.go).
//  2. RTS: it is matched; the receive is opened and the sender gets CTS, or the RTS waits for a
//     receive (rendezvous.go).
//  3. CTS: the send's bytes go out. Fin: the receiver has them all. Matched, Cancel, CancelReply:
//     their sends.
//  4. Segments need none of this: links put them into the Sink that a CTS named, and tell when it
//     is filled.
type proto struct{ ep *Endpoint }

// Frame implements link.Upper, as do the other methods.
func (x proto) Frame(lp *link.Peer, h wire.Header, body []byte, payload int) (dst []byte, done link.Payload, err error) {
	p := x.ep.peer(lp.Rank)
	switch h.Type {
	case wire.TypeEager:
		return p.eager(h.Flags&wire.FlagSync != 0, body, payload)
	case wire.TypeRTS:
		err = p.rts(body)
	case wire.TypeCTS:
		err = p.cts(body)
	case wire.TypeFin:
		err = p.fin(body)
	case wire.TypeMatched:
		err = p.matched(body)
	case wire.TypeCancel:
		err = p.cancel(body)
	case wire.TypeCancelReply:
		err = p.cancelReply(body)
	case wire.TypeCredit:
		err = p.credit(body)
	default:
		err = errors.New("no such frame between ranks")
	}
	return nil, nil, err
}

func (x proto) Source(lp *link.Peer, handle uint64) *link.Source {
	r := x.ep.find(handle)
	if r == nil || r.peer == nil || r.peer.Peer != lp || r.state != rndvSend && r.state != sent {
		return nil
	}
	return &r.out
}

func (x proto) Sink(lp *link.Peer, handle uint64) *link.Sink {
	r := x.ep.find(handle)
	if r == nil || r.peer == nil || r.peer.Peer != lp || r.state != rndvRecv {
		return nil
	}
	return &r.in
}

func (x proto) Written(s *link.Source) { x.ep.find(s.Handle).to(sent) }

func (x proto) Filled(k *link.Sink) { x.ep.find(k.Handle).filled() }

func (x proto) SayCredit(lp *link.Peer) { x.ep.peer(lp.Rank).sayCredit() }

func (x proto) Fatal(code fault.Code, status int, reason string) { x.ep.fatal(code, status, reason) }

// envelope makes a message of an envelope; its communicator may be unknown yet (nil).
func (p *peer) envelope(body []byte) (*message, *Comm, error) {
	ep := p.ep
	env, err := wire.ParseEnvelope(body)
	if err != nil {
		return nil, nil, err
	}
	if env.Kind >= kinds || env.Tag < 0 || env.Size > 1<<62 {
		return nil, nil, fmt.Errorf("envelope of kind %d, tag %d, %d bytes", env.Kind, env.Tag, env.Size)
	}
	c := ep.contextOf[env.Context]
	source := -1
	if c != nil {
		if source = c.remoteRank(p.Rank); source < 0 {
			return nil, nil, fmt.Errorf("it is no rank of another cluster in the communicator with context %x",
				env.Context)
		}
	} else if p.orphans >= ep.limit.Orphans {
		return nil, nil, fmt.Errorf("%d messages for communicators unknown here", p.orphans)
	}
	m := ep.newMessage()
	m.peer, m.context, m.kind, m.source = p, env.Context, int(env.Kind), source
	m.tag, m.size, m.handle = int(env.Tag), int64(env.Size), env.Handle
	return m, c, nil
}

// sending gives a send of ours that a frame from the peer names.
func (p *peer) sending(handle uint64, states ...state) (*Request, error) {
	r := p.ep.find(handle)
	if r == nil || r.peer != p {
		return nil, fmt.Errorf("no send %x to it is outstanding", handle)
	}
	for _, s := range states {
		if r.state == s {
			return r, nil
		}
	}
	return nil, fmt.Errorf("send %x is in state %v", handle, r.state)
}
