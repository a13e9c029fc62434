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
	mail    []*mail
	tokens  uint64
	colls   collectivestest.Native
	all     []*Native
	changes uint64 // counts events that a member could observe
}

// changed counts an event and wakes the members that sleep until the next one.
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
	token   uint64 // handle from Improbe; 0 if no Improbe has matched the message
	from    int    // native rank
	to      int
	tag     int
	data    []byte
	context uintptr
}

// Native is one process's view of its cluster's native MPI.
type Native struct {
	board  *Cluster
	rank   int
	recvs  []*nativeRecv // receives in posting order; the first match wins, as in MPI
	failed string

	seen    uint64 // value of Cluster.changes when the process looked last
	changed func() // called at the next change; nil if the process does not wait for it
}

type nativeRecv struct {
	r           *engine.Request
	mail        *mail // nil until the receive is matched
	context     uintptr
	source, tag int
}

// NewNative adds the process with a native rank to its cluster.
func NewNative(c *Cluster, rank int) *Native {
	n := &Native{board: c, rank: rank}
	c.all = append(c.all, n)
	return n
}

// Failure returns the error with which the engine has failed the process, or nil.
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

// settle gives every posted receive of this rank the first message that matches it.
func (n *Native) settle() {
	for _, v := range n.recvs {
		for i := 0; v.mail == nil && i < len(n.board.mail); i++ {
			m := n.board.mail[i]
			if m.token == 0 && m.to == n.rank && m.context == v.context && matches(m, v.source, v.tag) {
				v.mail = m
				n.board.take(i)
			}
		}
	}
}

func (b *Cluster) take(i int) { b.mail = append(b.mail[:i:i], b.mail[i+1:]...) }

// Iprobe implements engine.Native, as do the methods below.
func (n *Native) Iprobe(c *engine.Comm, source, tag int) (engine.Probe, bool, error) {
	_, p, ok := n.look(c, source, tag)
	return p, ok, nil
}

// Improbe matches a message and reserves it for Imrecv.
func (n *Native) Improbe(c *engine.Comm, source, tag int) (engine.Probe, bool, error) {
	m, p, ok := n.look(c, source, tag)
	if ok {
		n.board.tokens++
		m.token, p.Message = n.board.tokens, n.board.tokens
	}
	return p, ok, nil
}

// Imrecv receives the message that Improbe has reserved.
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

// Irecv posts a receive.
func (n *Native) Irecv(r *engine.Request) error {
	source, tag := r.Pattern()
	n.recvs = append(n.recvs, &nativeRecv{r: r, context: r.Comm().User, source: r.Comm().LocalRank(source), tag: tag})
	return nil
}

// Test reports whether a receive has completed, and fills in its result.
func (n *Native) Test(r *engine.Request) (bool, error) {
	n.settle()
	for i, v := range n.recvs {
		if v.r != r {
			continue
		}
		if v.mail == nil {
			return false, nil
		}
		n.recvs = append(n.recvs[:i:i], n.recvs[i+1:]...)
		c, buf := r.Cell(), r.Buffer()
		c.Source, c.Tag, c.Bytes = int32(r.Comm().RankOfLocal(v.mail.from)), int32(v.mail.tag),
			int64(copy(buf, v.mail.data))
		if len(v.mail.data) > len(buf) {
			c.Error = int32(engine.ErrTruncate)
		}
		return true, nil
	}
	return false, errors.New("no such receive")
}

// Cancel always fails. No simulated program cancels.
func (n *Native) Cancel(*engine.Request) error {
	return errors.New("the simulated MPI does not support cancelling")
}

// SetActivity does nothing, because threads never block in this MPI.
func (n *Native) SetActivity(engine.Activity) {}

// Access does nothing, because the memory of a simulated process is always valid.
func (n *Native) Access(engine.BadMemory) {}

// Fail records the reason. Operations that the process waits for then fail.
func (n *Native) Fail(_ int, reason string) {
	if n.failed == "" {
		n.failed = reason
	}
}

// Send sends a message inside the cluster, as MPI_Send does.
func (n *Native) Send(context uintptr, to, tag int, data []byte) {
	n.board.mail = append(n.board.mail, &mail{from: n.rank, to: to, tag: tag, data: data, context: context})
	n.board.changed()
}

// Coll starts a native collective and returns its handle.
func (n *Native) Coll(c *engine.Comm, a *engine.Coll) (uint64, error) {
	defer n.board.changed()
	return n.board.colls.Start(c.User, c.LocalSize(), n.rank, a.Args)
}

// CollTest reports whether a collective has completed.
func (n *Native) CollTest(token uint64) (bool, error) { return n.board.colls.Test(token) }

// Compute adds bytes for any operator and type.
func (n *Native) Compute(_, _ uint8, inout, in []byte) error {
	collectivestest.Add(inout, in)
	return nil
}

// ReduceLocal adds bytes.
func (n *Native) ReduceLocal(in, inout []byte, _ int, _, _ uint64) error {
	return n.Compute(0, 0, inout, in)
}
