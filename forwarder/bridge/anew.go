package bridge

import (
	"errors"
	"slices"

	"go.uber.org/zap/zapcore"
)

// A forwarder that was restarted does not know the jobs that run over it. Ranks on its networks
// dial it and join, as if the job began. The other forwarders still run the job.
//
//  1. The end that dials opens a connection with number 0, as for a job that begins: the new
//     forwarder when a rank has joined it, or the old one, which has been told that the job is not
//     known there (refused; the other end opens the job for it).
//  2. The old one drops its former connections, which are dead. It tells the new one at once all that
//     it gathers through the old one (Anew): which ranks have left, the Joins of all ranks, and that
//     all other forwarders are ready.
//  3. When the new one has all ranks it says Ready and its job runs. Then the old one uses the
//     connection like any that replaces a lost one (trunk.go), and all ranks retransmit what is not
//     acknowledged.
//
// It is fixed which of the two dials, and the dialler shows the Join of a rank. A forwarder that
// was restarted after all its ranks had left has no Join to show, and could not gather the job for
// the ranks whose way leads through it. So the other end of a bridge that is cut dials as well,
// after a pause (dialler.instead).

var errBegunAnew = errors.New("the other forwarder begins anew")

// anew handles a connection over which the other end gathers the job, which runs here.
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
