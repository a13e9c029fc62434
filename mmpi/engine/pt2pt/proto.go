package pt2pt

import (
	"errors"

	"github.com/leidenzipper/zipper/internal/wire"
	"github.com/leidenzipper/zipper/mmpi/engine/fault"
	"github.com/leidenzipper/zipper/mmpi/engine/link"
)

// proto is the endpoint's interface to links (link.Upper). A frame comes here when its turn has
// come:
//
//  1. Eager: it is matched; its payload goes into the receive, or into a buffer until one comes
//     (eager.go).
//  2. RTS: it is matched; the receive is opened and the sender gets CTS, or the RTS waits for a
//     receive (rendezvous.go).
//  3. CTS: the send's bytes go out. Fin: the receiver has them all. Matched, Cancel and CancelReply
//     change the state of their sends.
//  4. Segments need none of this: links put them into the Sink that a CTS named, and report when
//     it is filled.
type proto struct{ ep *Endpoint }

// Frame implements link.Upper, as do the other methods.
func (x proto) Frame(lp *link.Peer, h wire.Header, body []byte, payload int) (dst []byte, done link.Payload,
	err error) {
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
	if r.comm.context != controlContext {
		x.ep.arrived++
	}
	return &r.in
}

func (x proto) Written(s *link.Source) { x.ep.find(s.Handle).to(sent) }

func (x proto) Filled(k *link.Sink) { x.ep.find(k.Handle).filled() }

func (x proto) SendCredit(lp *link.Peer) { x.ep.peer(lp.Rank).sendCredit() }

func (x proto) Lost(cluster int, reason string) { x.ep.lose(cluster, reason) }

func (x proto) Fatal(code fault.Code, status int, reason string) { x.ep.fatal(code, status, reason) }
