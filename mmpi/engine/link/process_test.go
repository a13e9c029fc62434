package link

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/leidenzipper/zipper/internal/transport"
	"github.com/leidenzipper/zipper/internal/transport/tcp"
	"github.com/leidenzipper/zipper/internal/wire"
	"github.com/leidenzipper/zipper/mmpi/engine/fault"
	"github.com/leidenzipper/zipper/mmpi/engine/limits"
	"github.com/leidenzipper/zipper/mmpi/engine/wait"
	"github.com/leidenzipper/zipper/mmpi/engine/world"
)

// testProcess is a Set and the layer above it. That layer opens the Sink of every large message at
// once, so no RTS and CTS precede its bytes. The test tells the sender when a message is complete.
type testProcess struct {
	set     *Set               // Set under test
	lock    sync.Mutex         // lock of the Set (Config.Lock)
	sources map[uint64]*Source // Sources by handle
	sinks   map[uint64]*Sink   // Sinks that are not full, by handle
	written map[uint64]bool    // handles of Sources for which Written was called
	filled  map[uint64]bool    // handles of Sinks for which Filled was called
	failed  string             // reason for which the job has ended; empty: it goes on
	lost    []int              // clusters for which Lost was called, in order
	got     map[int][][]byte   // payloads of eager frames, by the rank that sent them, in order
}

func (u *testProcess) Frame(p *Peer, h wire.Header, body []byte, payload int) ([]byte, Payload, error) {
	if h.Type == wire.TypeCredit {
		c, err := wire.ParseCredit(body)
		p.RaiseData(c.Data)
		return nil, nil, err
	}
	if h.Type == wire.TypeEager {
		b := make([]byte, payload)
		u.got[p.Rank] = append(u.got[p.Rank], b)
		return b, inPlace{}, nil
	}
	return nil, nil, nil
}
func (u *testProcess) Source(_ *Peer, handle uint64) *Source { return u.sources[handle] }
func (u *testProcess) Sink(_ *Peer, handle uint64) *Sink     { return u.sinks[handle] }
func (u *testProcess) Written(s *Source)                     { u.written[s.Handle] = true }
func (u *testProcess) Filled(k *Sink) {
	u.filled[k.Handle] = true
	delete(u.sinks, k.Handle)
	k.Release()
}
func (u *testProcess) SendCredit(p *Peer) {
	f := p.NewFrame(wire.TypeCredit, 0, wire.CreditLen, 0)
	c := wire.Credit{Data: p.DataLimit()}
	f.Buf = c.Append(f.Buf)
	p.Send(f)
}
func (u *testProcess) Lost(cluster int, reason string) {
	u.lost = append(u.lost, cluster)
}
func (u *testProcess) Fatal(_ fault.Code, _ int, reason string) {
	u.failed = reason
	u.set.Close()
}

// inPlace is a frame that is complete once its payload has arrived.
type inPlace struct{}

func (inPlace) Landed(int) error { return nil }

// sendEager sends a buffer as one sequenced frame.
func (u *testProcess) sendEager(to int, b []byte) {
	p := u.set.Peer(to)
	f := p.NewFrame(wire.TypeEager, 0, wire.EnvelopeLen, len(b))
	e := wire.Envelope{Size: uint64(len(b))}
	f.Buf = append(e.Append(f.Buf), b...)
	p.Send(f)
}

// send sends a buffer as one Source from u to other's Sink.
func (u *testProcess) send(other *testProcess, handle uint64, from, to []byte) *Source {
	src := &Source{Handle: handle, Receiver: handle, Buf: from}
	k := &Sink{Handle: handle, Buf: to}
	u.sources[handle], other.sinks[handle] = src, k
	other.set.Peer(u.set.world.Rank).Open(k)
	u.set.Peer(other.set.world.Rank).Bulk(src)
	return src
}

// newProcess starts the Set of a rank in a job whose clusters have so many processes each. Lost
// links are not opened again, unless edit sets that.
func newProcess(t testing.TB, rank int, sizes []uint32, edit func(*Config)) *testProcess {
	t.Helper()
	u := &testProcess{sources: map[uint64]*Source{}, sinks: map[uint64]*Sink{}, written: map[uint64]bool{},
		filled: map[uint64]bool{}, got: map[int][][]byte{}}
	w := &world.World{Rank: rank}
	for i, size := range sizes {
		w.Clusters = append(w.Clusters, wire.Cluster{Name: fmt.Sprint("c", i), Size: size})
	}
	cfg := Config{World: w, Upper: u, Lock: &u.lock, Wiring: Wiring{System: wait.NewLinux()},
		Limits: limits.Limits{NoRail: time.Minute, LongPath: -1, Ping: time.Hour}.WithDefaults(2)}
	edit(&cfg)
	var err error
	if u.set, err = New(cfg); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		u.lock.Lock()
		defer u.lock.Unlock()
		u.set.Close()
	})
	return u
}

// tcpLinks returns the two ends of a TCP connection. The caller closes them.
func tcpLinks(t testing.TB) (a, b transport.Link) {
	t.Helper()
	ln, err := tcp.Listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	a, err = tcp.Dialer{}.Dial(ctx, ln.Addr())
	if err != nil {
		t.Fatal(err)
	}
	b, err = ln.Accept()
	if err != nil {
		t.Fatal(err)
	}
	return a, b
}

// tcpPair joins two Sets by one socket, for tests of splice and of access to the program's memory,
// which only sockets support.
func tcpPair(t *testing.T) (u [2]*testProcess) {
	t.Helper()
	a, b := tcpLinks(t)
	for i, l := range []transport.Link{a, b} {
		u[i] = newProcess(t, i, []uint32{1, 1}, func(c *Config) { c.Links = []transport.Link{l} })
	}
	return u
}
