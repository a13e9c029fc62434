package process

import (
	"errors"
	"fmt"

	"github.com/leidenzipper/zipper/collectives/collectivestest"
	"github.com/leidenzipper/zipper/mmpi/engine"
)

// Cluster is the simulated native MPI of one cluster. It holds messages that were sent and not
// received, in order. Its operations take no virtual time.
type Cluster struct {
	mail []*mail // messages that were sent and not received, in order
	// tokens is the number of messages reserved by Improbe so far, from which their handles come.
	tokens  uint64
	colls   collectivestest.Native // collectives under way
	all     []*Native              // members of the cluster, in the order of NewNative
	changes uint64                 // counts events that a member could observe
}

// changed counts an event of the cluster's native MPI, and wakes the members that sleep until the
// next one.
func (b *Cluster) changed() {
	b.changes++
	for _, n := range b.all {
		if n.changed != nil {
			n.changed()
			n.changed = nil
		}
	}
}

type mail struct {
	token   uint64  // handle from Improbe; 0 if no Improbe has matched the message
	from    int     // native rank
	to      int     // native rank of the receiver
	tag     int     // tag of the message
	data    []byte  // content of the message
	context uintptr // communicator of the message
}

// Native is one process's view of its cluster's native MPI.
type Native struct {
	board  *Cluster      // native MPI of the whole cluster
	rank   int           // rank in the cluster
	recvs  []*nativeRecv // receives in posting order; the first match wins, as in MPI
	failed string        // reason with which the engine has failed the process; empty if it has not

	seen    uint64 // value of Cluster.changes when the process looked last
	changed func() // called at the next change; nil if the process does not wait for it
}

type nativeRecv struct {
	r         *engine.Request // receive of the engine
	mail      *mail           // nil until the receive is matched
	cancelled bool            // the receive was cancelled before it was matched
	context   uintptr         // communicator of the receive
	// source and tag are the native rank and the tag that a message must have, or wildcards.
	source, tag int
}

// NewNative returns the view that the process with a native rank has of its cluster's native MPI,
// and adds it to the cluster.
func NewNative(c *Cluster, rank int) *Native {
	n := &Native{board: c, rank: rank}
	c.all = append(c.all, n)
	return n
}

// Failure returns the reason with which the engine has failed the process as an error, or nil if it
// has not.
func (n *Native) Failure() error {
	if n.failed == "" {
		return nil
	}
	return errors.New(n.failed)
}

func (n *Native) look(c *engine.Comm, source, tag int) (*mail, engine.Probe, bool) {
	n.settle()
	for _, m := range n.board.mail {
		if m.token == 0 && m.to == n.rank && m.context == c.User && matches(m, source, tag) {
			return m, engine.Probe{Source: c.RankOfLocal(m.from), Tag: m.tag, Bytes: int64(len(m.data))}, true
		}
	}
	return nil, engine.Probe{}, false
}

func matches(m *mail, source, tag int) bool {
	return (source == engine.AnySource || source == m.from) && (tag == engine.AnyTag || tag == m.tag)
}

// settle matches the posted receives of this rank with the messages that have been sent to it, each
// with the first one that fits.
func (n *Native) settle() {
	for _, v := range n.recvs {
		for i := 0; v.mail == nil && !v.cancelled && i < len(n.board.mail); i++ {
			m := n.board.mail[i]
			if m.token == 0 && m.to == n.rank && m.context == v.context && matches(m, v.source, v.tag) {
				v.mail = m
				n.board.take(i)
			}
		}
	}
}

func (b *Cluster) take(i int) { b.mail = append(b.mail[:i:i], b.mail[i+1:]...) }

// Iprobe reports whether a message with source and tag has arrived in communicator c, and describes
// it. The error is always nil. It implements engine.Native, as do the methods below.
func (n *Native) Iprobe(c *engine.Comm, source, tag int) (engine.Probe, bool, error) {
	_, p, ok := n.look(c, source, tag)
	return p, ok, nil
}

// Improbe is Iprobe, and also reserves the message for a call of Imrecv with the handle in
// Probe.Message.
func (n *Native) Improbe(c *engine.Comm, source, tag int) (engine.Probe, bool, error) {
	m, p, ok := n.look(c, source, tag)
	if ok {
		n.board.tokens++
		m.token, p.Message = n.board.tokens, n.board.tokens
	}
	return p, ok, nil
}

// Imrecv starts the receive r of the message that Improbe has reserved with the handle message.
func (n *Native) Imrecv(r *engine.Request, message uint64) error {
	for i, m := range n.board.mail {
		if m.token == message {
			n.board.take(i)
			n.recvs = append(n.recvs, &nativeRecv{r: r, mail: m})
			return nil
		}
	}
	return fmt.Errorf("no message %d", message)
}

// Irecv posts the receive r. The error is always nil.
func (n *Native) Irecv(r *engine.Request) error {
	source, tag := r.Pattern()
	n.recvs = append(n.recvs, &nativeRecv{r: r, context: r.Comm().User, source: r.Comm().LocalRank(source), tag: tag})
	return nil
}

// Test reports whether the receive r has completed, and then fills in its result.
func (n *Native) Test(r *engine.Request) (bool, error) {
	n.settle()
	for i, v := range n.recvs {
		if v.r != r {
			continue
		}
		if v.mail == nil && !v.cancelled {
			return false, nil
		}
		n.recvs = append(n.recvs[:i:i], n.recvs[i+1:]...)
		c, buf := r.Cell(), r.Buffer()
		if v.cancelled {
			c.Cancelled = 1
			return true, nil
		}
		c.Source, c.Tag, c.Bytes = int32(r.Comm().RankOfLocal(v.mail.from)), int32(v.mail.tag),
			int64(copy(buf, v.mail.data))
		if len(v.mail.data) > len(buf) {
			c.Error = int32(engine.ErrTruncate)
		}
		return true, nil
	}
	return false, errors.New("no such receive")
}

// Cancel cancels the receive r unless it is matched. The error is always nil.
func (n *Native) Cancel(r *engine.Request) error {
	n.settle()
	for _, v := range n.recvs {
		if v.r == r && v.mail == nil {
			v.cancelled = true
		}
	}
	return nil
}

// SetActivity does nothing, because threads never block in simulated native MPI.
func (n *Native) SetActivity(engine.Activity) {}

// Access does nothing, because the memory of a simulated process is always valid.
func (n *Native) Access(engine.BadMemory) {}

// Fail records the reason for which the engine fails the process, unless there is one already.
// Unlike that of a real process it returns; the engine has the operations under way fail.
func (n *Native) Fail(_ int, reason string) {
	if n.failed == "" {
		n.failed = reason
	}
}

// Send sends data to native rank to of the cluster in a communicator, as MPI_Send does. It never
// blocks.
func (n *Native) Send(context uintptr, to, tag int, data []byte) {
	n.board.mail = append(n.board.mail, &mail{from: n.rank, to: to, tag: tag, data: data, context: context})
	n.board.changed()
}

// Coll starts the collective a in the native part of communicator c, and returns the handle for
// CollTest.
func (n *Native) Coll(c *engine.Comm, a *engine.Coll) (uint64, error) {
	defer n.board.changed()
	return n.board.colls.Start(c.User, c.LocalSize(), n.rank, a.Args)
}

// CollTest reports whether the collective with the handle token has completed.
func (n *Native) CollTest(token uint64) (bool, error) { return n.board.colls.Test(token) }

// Compute adds the bytes of in to those of inout modulo 256, for any operator and datatype.
func (n *Native) Compute(_, _ uint8, inout, in []byte) error {
	collectivestest.Add(inout, in)
	return nil
}

// ReduceLocal adds the bytes of in to those of inout modulo 256, for any operator and datatype.
func (n *Native) ReduceLocal(in, inout []byte, _ int, _, _ uint64) error {
	return n.Compute(0, 0, inout, in)
}

// Recode implements engine.Native. It changes nothing, because formats are equal.
func (n *Native) Recode([]byte, int, uint64, bool) error { return nil }

// RecodeNumbers implements engine.Native.
func (n *Native) RecodeNumbers(uint8, []byte, bool) {}
