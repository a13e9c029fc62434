package engine

import (
	"fmt"
	"io"
	"sync"
	"testing"

	"github.com/leidenzipper/zipper/collectives/collectivestest"
	"github.com/leidenzipper/zipper/internal/transport"
	"github.com/leidenzipper/zipper/internal/wire"
)

// memLink is one end of a byte stream in memory, without descriptors, for engines that never
// sleep.
type memLink struct {
	in, out *[]byte
	room    int // the number of bytes that out may hold; 0: no limit
	closed  bool
	eof     *bool
}

func (l *memLink) TryRead(p []byte) (int, error) {
	switch {
	case l.closed:
		return 0, transport.ErrClosed
	case len(*l.in) == 0 && *l.eof:
		return 0, io.EOF
	case len(*l.in) == 0:
		return 0, transport.ErrAgain
	}
	n := copy(p, *l.in)
	*l.in = (*l.in)[n:]
	return n, nil
}

func (l *memLink) TryWrite(bufs ...[]byte) (n int, err error) {
	if l.closed {
		return 0, transport.ErrClosed
	}
	for _, b := range bufs {
		if l.room > 0 {
			b = b[:min(len(b), l.room-len(*l.out))]
		}
		*l.out = append(*l.out, b...)
		n += len(b)
	}
	if n == 0 {
		return 0, transport.ErrAgain
	}
	return n, nil
}

func (l *memLink) FD() int        { return -1 }
func (l *memLink) WriteFD() int   { return -1 }
func (l *memLink) Arm() bool      { return true }
func (l *memLink) Close() error   { l.closed = true; return nil }
func (l *memLink) Remote() string { return "mem" }

// fabric is a job in one process: engines, a forwarder between them that the test steps by hand,
// and a native MPI per cluster.
type fabric struct {
	t       testing.TB
	engines []*Engine
	links   []*memLink
	up      [][]byte // rank → forwarder
	down    [][]byte
	eof     []bool
	natives []*fakeNative
	dead    []bool   // the ranks that the test has lost
	states  []uint32 // the numbers of Losts sent to each rank
	lost    uint32   // the number of lost clusters
	log     func(format string, args ...any)
	edit    func(h *wire.Header, frame []byte) [][]byte // returns the frames to send in place of one; nil: no change
}

// newFabric returns a new job. Each of change may change an engine's configuration, in which the
// only link is a *memLink.
func newFabric(t testing.TB, sizes []int, limits Limits, change ...func(rank int, cfg *Config)) *fabric {
	f := &fabric{t: t, log: func(string, ...any) {}}
	var clusters []wire.Cluster
	n := 0
	for i, s := range sizes {
		clusters = append(clusters, wire.Cluster{Name: string(rune('a' + i)), Size: uint32(s)})
		n += s
	}
	if limits.LongPath == 0 {
		limits.LongPath = -1
	}
	f.up, f.down, f.eof = make([][]byte, n), make([][]byte, n), make([]bool, n)
	f.dead, f.states = make([]bool, n), make([]uint32, n)
	first, rank := 0, 0
	for _, s := range sizes {
		board := &board{}
		for range s {
			l := &memLink{in: &f.down[rank], out: &f.up[rank], eof: &f.eof[rank]}
			nat := &fakeNative{board: board, rank: rank - first, first: first}
			cfg := Config{World: World{Rank: rank, Clusters: clusters, TagUB: 1 << 20}, Native: nat,
				Wiring: Wiring{Links: []transport.Link{l}}, Quiet: true, Limits: limits}
			for _, f := range change {
				f(rank, &cfg)
			}
			e, err := New(cfg)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(e.wait.Close)
			t.Cleanup(e.Discard)
			f.engines, f.links, f.natives = append(f.engines, e), append(f.links, l), append(f.natives, nat)
			rank++
		}
		first += s
	}
	return f
}

// world makes a communicator of all ranks with a context in every engine.
func (f *fabric) world(context uint64) []*Comm {
	var comms []*Comm
	for r := range f.engines {
		comms = append(comms, f.comm(r, context, nil))
	}
	return comms
}

// comm makes a communicator in one engine; ranks nil: all.
func (f *fabric) comm(at int, context uint64, ranks []int) *Comm {
	e := f.engines[at]
	var world, native []int32
	if ranks == nil {
		for r := range f.engines {
			ranks = append(ranks, r)
		}
	}
	me, local := -1, int32(0)
	for i, r := range ranks {
		world = append(world, int32(r))
		if r == at {
			me = i
		}
		if e.sameCluster(r) {
			native = append(native, local)
			local++
		} else {
			native = append(native, Remote)
		}
	}
	c, err := e.AddComm(uintptr(context), context, me, world, native)
	if err != nil {
		f.t.Fatal(err)
	}
	return c
}

// relay moves whole frames from rank `from` to where they are for, at most n (0: all), and returns
// how many.
func (f *fabric) relay(from, n int) (moved int) {
	for n == 0 || moved < n {
		b := f.up[from]
		if len(b) < wire.HeaderLen {
			return moved
		}
		h, err := wire.ParseHeader(b)
		if err != nil {
			f.t.Fatalf("engine %d wrote a bad frame: %v", from, err)
		}
		size := wire.HeaderLen + int(h.Length)
		if len(b) < size {
			return moved
		}
		frame := b[:size:size]
		f.up[from] = b[size:]
		moved++
		switch h.Type {
		case wire.TypePing:
			f.down[from] = wire.AppendFrame(f.down[from], wire.Header{Type: wire.TypePong, Src: wire.Nobody,
				Dst: wire.Nobody}, nil)
		case wire.TypeBye:
			f.down[from] = wire.AppendFrame(f.down[from], wire.Header{Type: wire.TypeByeAck, Src: wire.Nobody,
				Dst: wire.Nobody}, nil)
		case wire.TypeAbort:
			for r := range f.down {
				if r != from {
					f.down[r] = append(f.down[r], frame...)
				}
			}
		case wire.TypePong, wire.TypeCount, wire.TypeLost:
		default:
			f.log("  %s", describe(h, frame))
			out := [][]byte{frame}
			if f.edit != nil {
				out = f.edit(&h, frame)
			}
			for _, o := range out {
				if f.dead[h.Dst] {
					continue
				}
				f.down[h.Dst] = append(f.down[h.Dst], o...)
			}
		}
	}
	return moved
}

// settle runs everything until nothing moves.
func (f *fabric) settle() {
	for moved := 1; moved > 0; {
		moved = 0
		for r, e := range f.engines {
			if f.dead[r] {
				continue
			}
			moved += e.Progress(0)
			moved += f.relay(r, 0)
			if err := e.check(); err != nil {
				f.t.Fatalf("rank %d: %v", r, err)
			}
		}
	}
}

// describe shows a frame between ranks.
func describe(h wire.Header, frame []byte) string {
	s := fmt.Sprintf("%d>%d %v", h.Src, h.Dst, h.Type)
	if h.Type.Sequenced() {
		s += fmt.Sprintf(" #%d", h.Seq)
	}
	if h.Flags&wire.FlagResent != 0 {
		s += " again"
	}
	body := frame[wire.HeaderLen:]
	switch h.Type {
	case wire.TypeEager, wire.TypeRTS:
		e, _ := wire.ParseEnvelope(body)
		s += fmt.Sprintf(" tag=%d size=%d", e.Tag, e.Size)
		if h.Flags&wire.FlagSync != 0 {
			s += " sync"
		}
	case wire.TypeCTS:
		c, _ := wire.ParseCTS(body)
		s += fmt.Sprintf(" bytes=%d", c.Bytes)
	case wire.TypeData:
		d, _ := wire.ParseData(body)
		s += fmt.Sprintf(" offset=%d size=%d", d.Offset, h.Payload())
	case wire.TypeCredit:
		c, _ := wire.ParseCredit(body)
		s += fmt.Sprintf(" eager=%d data=%d", c.Eager, c.Data)
	case wire.TypeCancelReply:
		c, _ := wire.ParseCancelReply(body)
		s += fmt.Sprintf(" ok=%v", c.OK)
	}
	return s + fmt.Sprintf(" ack=%d", h.Ack)
}

// board is the native MPI of one cluster: messages that were sent and not received, in order.
type board struct {
	sync.Mutex
	mail   []*mail
	tokens uint64
	colls  collectivestest.Native
}

type mail struct {
	token   uint64 // not 0: taken by improbe
	context uintptr
	from    int // native
	to      int
	tag     int
	data    []byte
}

// fakeNative is one process's view of it.
type fakeNative struct {
	board  *board
	rank   int
	first  int           // virtual rank of native rank 0
	recvs  []*nativeRecv // in posting order; posted ones take what matches first, as MPI does
	busy   bool
	does   Activity
	failed string
	code   int
	bad    []BadMemory // the arguments of the calls of Access
	// refuses is the error with which native collectives do not start; nil: they start.
	refuses error
}

type nativeRecv struct {
	r         *Request
	mail      *mail // nil: not matched yet
	cancelled bool
	// A receive that did not come through the engine.
	cell        *Cell
	buf         []byte
	context     uintptr
	source, tag int
}

func (n *fakeNative) look(context uintptr, source, tag int) *mail {
	n.settle()
	for _, m := range n.board.mail {
		if m.token == 0 && m.to == n.rank && m.context == context && (source == AnySource || source == m.from) &&
			(tag == AnyTag || tag == m.tag) {
			return m
		}
	}
	return nil
}

// settle lets posted receives take messages.
func (n *fakeNative) settle() {
	for _, v := range n.recvs {
		if v.mail != nil || v.cancelled {
			continue
		}
		for i, m := range n.board.mail {
			if m.token == 0 && m.to == n.rank && m.context == v.context &&
				(v.source == AnySource || v.source == m.from) && (v.tag == AnyTag || v.tag == m.tag) {
				v.mail = m
				n.board.mail = append(n.board.mail[:i:i], n.board.mail[i+1:]...)
				break
			}
		}
	}
}

func (n *fakeNative) Iprobe(c *Comm, source, tag int) (Probe, bool, error) {
	n.board.Lock()
	defer n.board.Unlock()
	m := n.look(c.User, source, tag)
	if m == nil {
		return Probe{}, false, nil
	}
	return Probe{Source: c.RankOfLocal(m.from), Tag: m.tag, Bytes: int64(len(m.data))}, true, nil
}

func (n *fakeNative) Improbe(c *Comm, source, tag int) (Probe, bool, error) {
	n.board.Lock()
	defer n.board.Unlock()
	m := n.look(c.User, source, tag)
	if m == nil {
		return Probe{}, false, nil
	}
	n.board.tokens++
	m.token = n.board.tokens
	return Probe{Message: m.token, Source: c.RankOfLocal(m.from), Tag: m.tag, Bytes: int64(len(m.data))}, true, nil
}

func (n *fakeNative) Imrecv(r *Request, message uint64) error {
	n.board.Lock()
	defer n.board.Unlock()
	for i, m := range n.board.mail {
		if m.token == message {
			n.board.mail = append(n.board.mail[:i:i], n.board.mail[i+1:]...)
			n.recvs = append(n.recvs, &nativeRecv{r: r, mail: m})
			return nil
		}
	}
	return fmt.Errorf("no message %d", message)
}

func (n *fakeNative) Irecv(r *Request) error {
	source, tag := r.Pattern()
	n.recvs = append(n.recvs, &nativeRecv{r: r, context: r.Comm().User, source: r.Comm().LocalRank(source), tag: tag})
	return nil
}

func (n *fakeNative) Test(r *Request) (bool, error) {
	n.board.Lock()
	defer n.board.Unlock()
	n.settle()
	for i, v := range n.recvs {
		if v.r != r {
			continue
		}
		if v.mail == nil && !v.cancelled {
			return false, nil
		}
		n.recvs = append(n.recvs[:i:i], n.recvs[i+1:]...)
		v.fill(r.Cell(), r.Buffer(), r.Comm())
		return true, nil
	}
	return false, fmt.Errorf("not under way")
}

func (v *nativeRecv) fill(cell *Cell, buf []byte, c *Comm) {
	if v.cancelled {
		cell.Cancelled = 1
		return
	}
	cell.Source, cell.Tag, cell.Bytes = int32(c.RankOfLocal(v.mail.from)), int32(v.mail.tag),
		int64(copy(buf, v.mail.data))
	if len(v.mail.data) > len(buf) {
		cell.Error = int32(ErrTruncate)
	}
}

func (n *fakeNative) Cancel(r *Request) error {
	for _, v := range n.recvs {
		if v.r == r && v.mail == nil {
			v.cancelled = true
		}
	}
	return nil
}

func (n *fakeNative) SetActivity(a Activity) { n.does, n.busy = a, a != Idle } // with the engine's lock
func (n *fakeNative) Access(bad BadMemory)   { n.bad = append(n.bad, bad) }

func (n *fakeNative) Fail(code int, reason string) {
	n.failed, n.code = reason, code
}

// send is MPI_Send inside the cluster.
func (n *fakeNative) send(context uintptr, to, tag int, data []byte) {
	n.board.Lock()
	defer n.board.Unlock()
	n.board.mail = append(n.board.mail, &mail{context: context, from: n.rank, to: to, tag: tag, data: data})
}
