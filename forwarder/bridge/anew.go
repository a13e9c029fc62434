package bridge

import (
	"errors"
	"slices"

	"go.uber.org/zap/zapcore"
)

// A forwarder that was started again knows nothing of the jobs that run over it. Ranks on its
// networks dial it again and join, as if the job began; the other forwarders still run the job.
//
//  1. The end that dials opens a connection with number 0, as for a job that begins: the new
//     forwarder when a rank has joined it, or the old one, which has been told that the job is not
//     known there (refused; the other end opens the job for it).
//  2. The old one forgets the connections that it had, which are dead, and tells at once all that
//     the new one is to gather through it: which ranks have left, the Joins, those of ranks that
//     have left too, and that all others are ready (Anew).
//  3. When the new one sees all ranks it says Ready and its job runs. Then the old one uses the
//     connection as any that takes the place of a lost one (trunk.go), and all ranks send again
//     what is not acknowledged.
//
// Which of the two dials is fixed, and it shows what a rank has shown it. A forwarder that was
// started again when all its ranks had left has nothing to show: it would be waited for in vain,
// and could not gather the job for those that still need it on their way. So the other end of a
// bridge that is cut dials as well, after a while (instead).

var errBegunAnew = errors.New("the other forwarder begins anew")

// anew takes a connection over which the other end gathers, while the job runs here.
func (e *entry) anew(c *conn) {
	e.log(zapcore.InfoLevel, "another forwarder gathers a running job anew")
	coming, inUse := e.conns.restart(c)
	for _, o := range slices.Concat(coming, inUse) {
		e.end(o.id, errBegunAnew)
	}
	if len(inUse) > 0 {
		e.trunk.sever(inUse[0], "the forwarder "+e.Address+" was started again")
	}
	e.do(Anew{Conn: c.id})
}
