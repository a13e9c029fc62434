package process

import (
	"errors"
	"fmt"

	"github.com/leidenzipper/zipper/collectives/collectivestest"
	"github.com/leidenzipper/zipper/mmpi/engine"
)

// Cluster is the native MPI of one: messages that were sent and not received, in order. Nothing of
// it takes time.
type Cluster struct {
	mail    []*mail
	tokens  uint64
	colls   collectivestest.Native
	all     []*Native
	changes uint64 // of what any of them may be told
}

// changed has those know that sleep until something has.
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
	token   uint64 // not 0: taken by Improbe
	from    int    // native
	to      int
	tag     int
	data    []byte
	context uintptr
}

// Native is one process's view of it.
type Native struct {
	board  *Cluster
	rank   int
	recvs  []*nativeRecv // in posting order; posted ones take what matches first, as MPI does
	failed string

	seen    uint64 // changes when the process looked last
	changed func() // it sleeps until something does; nil: it does not
}

type nativeRecv struct {
	r           *engine.Request
	mail        *mail // nil: not matched yet
	context     uintptr
	source, tag int
}

// NewNative is that of a native rank.
func NewNative(c *Cluster, rank int) *Native {
	n := &Native{board: c, rank: rank}
	c.all = append(c.all, n)
	return n
}

// Failure is why the engine has ended the process.
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

// settle lets posted receives take messages.
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

// Iprobe is engine.Native's, as are those that follow.
func (n *Native) Iprobe(c *engine.Comm, source, tag int) (engine.Probe, bool, error) {
	_, p, ok := n.look(c, source, tag)
	return p, ok, nil
}

// Improbe takes a message.
func (n *Native) Improbe(c *engine.Comm, source, tag int) (engine.Probe, bool, error) {
	m, p, ok := n.look(c, source, tag)
	if ok {
		n.board.tokens++
		m.token, p.Message = n.board.tokens, n.board.tokens
	}
	return p, ok, nil
}

// Imrecv receives it.
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

// Test looks whether it is over.
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
	return false, errors.New("not under way")
}

// Cancel is not asked for.
func (n *Native) Cancel(*engine.Request) error { return errors.New("nothing is cancelled here") }

// SetActivity does not matter: threads never block in this MPI.
func (n *Native) SetActivity(engine.Activity) {}

// Access has nothing to do: a simulated process's memory is there.
func (n *Native) Access(engine.BadMemory) {}

// Fail notes why; what the process waits for ends with an error.
func (n *Native) Fail(_ int, reason string) {
	if n.failed == "" {
		n.failed = reason
	}
}

// Send is MPI_Send inside the cluster.
func (n *Native) Send(context uintptr, to, tag int, data []byte) {
	n.board.mail = append(n.board.mail, &mail{from: n.rank, to: to, tag: tag, data: data, context: context})
	n.board.changed()
}

// Coll starts a native collective.
func (n *Native) Coll(c *engine.Comm, a *engine.Coll) (uint64, error) {
	defer n.board.changed()
	return n.board.colls.Start(c.User, c.LocalSize(), n.rank, a.Args)
}

// CollTest looks whether it is over.
func (n *Native) CollTest(token uint64) (bool, error) { return n.board.colls.Test(token) }

// Compute adds bytes, whatever the function.
func (n *Native) Compute(_, _ uint8, inout, in []byte) error {
	collectivestest.Add(inout, in)
	return nil
}

// ReduceLocal adds bytes.
func (n *Native) ReduceLocal(in, inout []byte, _ int, _, _ uint64) error {
	return n.Compute(0, 0, inout, in)
}
