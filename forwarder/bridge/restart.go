package bridge

import (
	"errors"
	"slices"

	"go.uber.org/zap/zapcore"
)

// A restarted forwarder does not know the jobs that run over it. Ranks on its networks dial it and
// join, as if the job began. The other forwarders still run the job.
//
//  1. The dialling end opens a connection with number 0, as for a job that begins. The dialling end
//     is either the new forwarder, once a rank has joined it, or the old one, which has been told
//     that the new forwarder does not know the job (refused; the other end opens the job for it).
//  2. The old forwarder drops its former connections, which are dead. It sends the new one at once
//     all that the new one gathers through the old one (Regathers): the ranks that have left, the
//     Joins of these and of the ranks of which it learns there, and a Ready of each other
//     forwarder.
//  3. Once the new forwarder has all ranks, it sends Ready and its job runs. Then the old forwarder
//     uses the connection like any that replaces a lost one (trunk.go), and all ranks retransmit
//     unacknowledged messages.
//
// One end of a bridge is always the dialling one, and it shows the Join of a rank. A forwarder that
// was restarted after all its ranks had left has no Join to show, and could not gather the job for
// the ranks that need it as a hop. So the other end of a bridge that is cut dials as well, after a
// pause (dialler.dialsForPeer).

var errRestarted = errors.New("the other forwarder was restarted")

// restarted handles a connection over which the other end, which was restarted, gathers the running
// job.
func (e *entry) restarted(c *conn) {
	e.log(zapcore.InfoLevel, "another forwarder gathers a running job again")
	coming, inUse := e.conns.restart(c)
	for _, o := range slices.Concat(coming, inUse) {
		e.trunk.dialler.settled(o)
		e.end(o.id, errRestarted)
	}
	if len(inUse) > 0 {
		e.trunk.sever(inUse[0], "the forwarder "+e.Address+" was started again", 0)
	}
	e.do(Regathers{Conn: c.id})
}
