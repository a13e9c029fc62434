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
//  1. a rank or another forwarder asks for it (Aborted), a link is lost for good (loss.go), the
//     protocol is broken (Damaged), a half has ended (half.go), or the forwarder stops: the job fails
//     (failWith), and its links get Abort and linger;
//  2. or it is released (Release);
//  3. or all ranks have left;
//  4. when its last link is closed the kernel takes back what it has opened for it (perhapsOver);
//  5. then it has ended (Over).

// ending ends a running job.
type ending struct {
	*core
	ranks *ranks
	links *links
}

// aborted fails the job because a rank asked for it; all but the connection that said so hear of
// it, in a sealed job with that rank's own word.
func (e *ending) aborted(x *Aborted) {
	m := e.ranks.members[x.Conn]
	if m == nil {
		return
	}
	a := x.Said
	a.Reason = wire.Printable(a.Reason)
	reason, rank, from := a.Reason, a.Rank, x.Conn
	if m.zipper < 0 {
		rank, from = m.rank, 0 // the rank hears it too, as an answer
		if a.Rank == m.rank {  // a rank that reports another's end has said all itself
			cluster, native := e.place(m.rank)
			reason = fmt.Sprintf("%s, by virtual rank %d (rank %d of cluster %s on host %s) with code %d", a.Reason,
				m.rank, native, cluster, e.ranks.hosts[m.rank], a.Code)
		}
		e.logOf(x.Conn, zapcore.WarnLevel, "rank aborts the job", zap.Int32("code", a.Code), zap.String("reason", a.Reason))
	}
	last := abortFrame(a.Code, rank, reason)
	if x.Said.By != wire.Nobody {
		last = frame(wire.TypeAbort, &x.Said)
	}
	e.failWith(a.Code, reason, last, from)
	if m.zipper >= 0 { // the other end has said so on all
		e.links.cut(m.zipper, fmt.Errorf("the job was aborted: %s", a.Reason))
	}
}

// fail ends a running job with status 1: all but the cause get Abort.
func (e *ending) fail(rank uint32, reason string, cause action.Conn) {
	e.failWith(1, reason, abortFrame(1, rank, reason), cause)
}

// failWith is fail with a frame that tells the others.
func (e *ending) failWith(code int32, reason string, last []byte, cause action.Conn) {
	if e.state != Running || !e.finish(Ending, result{code, reason}) {
		return
	}
	e.log(zapcore.ErrorLevel, "job aborted", zap.Int32("code", code), zap.String("reason", reason))
	told := map[action.Conn]bool{0: true, cause: true}
	tell := func(c action.Conn) {
		if !told[c] {
			told[c] = true // a bridge stands there for many
			e.do(action.Abort{Conn: c, Frame: last})
		}
	}
	for v, c := range e.ranks.routes {
		e.ranks.unroute(uint32(v), c)
		tell(c)
	}
	for _, br := range e.links.list() { // also one that leads to no rank any more
		for _, c := range br.Conns() {
			tell(c)
		}
	}
}

// release ends the links of a running job that may go on without this forwarder: its ranks get Bye,
// which is a lost link to them, and other forwarders lose a bridge.
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
