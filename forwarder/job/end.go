package job

import (
	"errors"
	"fmt"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/leidenzipper/zipper/forwarder/action"
	"github.com/leidenzipper/zipper/internal/wire"
)

// How a running job ends:
//
//  1. It fails (failWith): a rank or another forwarder aborts it (Aborted), a link is lost for good
//     (loss.go), the protocol is broken (Damaged), a half has ended (half.go), or the forwarder
//     stops. Its links get Abort and linger.
//  2. Or it is released (Release), or all its ranks have left.
//  3. When its last link is closed the kernel closes the ways that it has opened for the job
//     (endIfOver).
//  4. Then the job has ended (Over).

// ending ends the links of a running job, because the job has failed or is released.
type ending struct {
	*core
	ranks *ranks
	links *links
}

// aborted fails the job because a rank or another forwarder has sent Abort. All connections, except
// that of a forwarder that has sent it, get an Abort: in a sealed job the rank's own frame, which
// proves its origin.
func (e *ending) aborted(x *Aborted) {
	m := e.ranks.members[x.Conn]
	if m == nil || m.zipper < 0 && !e.alive(m.rank) {
		return
	}
	a := x.Frame
	a.Reason = wire.Printable(a.Reason)
	reason, rank, from := a.Reason, a.Rank, x.Conn
	if m.zipper < 0 {
		rank, from = m.rank, 0 // the rank gets Abort too, as an answer
		if a.Rank == m.rank {  // a report of another rank's end has a complete reason
			cluster, native := e.place(m.rank)
			reason = fmt.Sprintf("%s, by virtual rank %d (rank %d of cluster %s on host %s) with code %d", a.Reason,
				m.rank, native, cluster, e.ranks.hosts[m.rank], a.Code)
		}
		e.logOf(x.Conn, zapcore.WarnLevel, "rank aborts the job", zap.Int32("code", a.Code), zap.String("reason", a.Reason))
	}
	last := abortFrame(a.Code, rank, reason)
	if x.Frame.By != wire.Nobody {
		last = frame(wire.TypeAbort, &x.Frame)
	}
	e.failWith(a.Code, reason, last, from)
	if m.zipper >= 0 { // the other end has sent Abort over all connections
		e.links.cut(m.zipper, fmt.Errorf("the job was aborted: %s", a.Reason))
	}
}

// fail ends a running job with status 1, because of rank (or wire.Nobody) and for a reason. All
// connections except cause get Abort.
func (e *ending) fail(rank uint32, reason string, cause action.Conn) {
	e.failWith(1, reason, abortFrame(1, rank, reason), cause)
}

// failWith ends a running job with the status code and a reason, and sends last, an encoded frame,
// over all connections except cause.
func (e *ending) failWith(code int32, reason string, last []byte, cause action.Conn) {
	if e.state != Running || !e.finish(Ending, result{code, reason}) {
		return
	}
	e.log(zapcore.ErrorLevel, "job aborted", zap.Int32("code", code), zap.String("reason", reason))
	sent := map[action.Conn]bool{0: true, cause: true}
	tell := func(c action.Conn) {
		if !sent[c] {
			sent[c] = true // several ranks have the route of a bridge
			e.do(action.Abort{Conn: c, Frame: last})
		}
	}
	for v, c := range e.ranks.routes {
		e.ranks.unroute(uint32(v), c)
		tell(c)
	}
	for _, br := range e.links.list() { // a bridge may have no route any more
		for _, c := range br.Conns() {
			tell(c)
		}
	}
}

// release ends the links of a running job that may go on without this forwarder. Its ranks get Bye,
// which they handle as a lost link, and other forwarders lose a bridge.
func (e *ending) release(reason string) {
	if e.state != Running || !e.finish(Ending, result{1, reason}) {
		return
	}
	e.log(zapcore.InfoLevel, "job released: it may be resumed")
	for _, br := range e.links.list() {
		e.links.cut(br.Zipper, errors.New(reason))
	}
	for v, c := range e.ranks.routes {
		if e.ranks.unroute(uint32(v), c) && e.ranks.here(uint32(v)) {
			e.do(action.Abort{Conn: c, Frame: frame(wire.TypeBye, nil)})
		}
	}
}
