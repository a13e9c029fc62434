package link

import (
	"context"
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

// fakeUpper clears every send at once: its bytes are all that links see. The sender is told of the
// end by the test.
type fakeUpper struct {
	set     *Set
	sources map[uint64]*Source
	sinks   map[uint64]*Sink
	written map[uint64]bool
	filled  map[uint64]bool
	failed  string
}

func (u *fakeUpper) Frame(p *Peer, h wire.Header, body []byte, payload int) ([]byte, Payload, error) {
	if h.Type == wire.TypeCredit {
		c, err := wire.ParseCredit(body)
		p.RaiseData(c.Data)
		return nil, nil, err
	}
	return nil, nil, nil
}
func (u *fakeUpper) Source(_ *Peer, handle uint64) *Source { return u.sources[handle] }
func (u *fakeUpper) Sink(_ *Peer, handle uint64) *Sink     { return u.sinks[handle] }
func (u *fakeUpper) Written(s *Source)                     { u.written[s.Handle] = true }
func (u *fakeUpper) Filled(k *Sink) {
	u.filled[k.Handle] = true
	delete(u.sinks, k.Handle)
	k.Release()
}
func (u *fakeUpper) SendCredit(p *Peer) {
	f := p.NewFrame(wire.TypeCredit, 0, wire.CreditLen, 0)
	c := wire.Credit{Data: p.DataLimit()}
	f.Buf = c.Append(f.Buf)
	p.Send(f)
}
func (u *fakeUpper) Fatal(_ fault.Code, _ int, reason string) {
	u.failed = reason
	u.set.Close()
}

// send sends a buffer as one Source from u to other's Sink.
func (u *fakeUpper) send(other *fakeUpper, handle uint64, from, to []byte) *Source {
	src := &Source{Handle: handle, Receiver: handle, Buf: from}
	k := &Sink{Handle: handle, Buf: to}
	u.sources[handle], other.sinks[handle] = src, k
	other.set.Peer(u.set.world.Rank).Open(k)
	u.set.Peer(other.set.world.Rank).Bulk(src)
	return src
}

// tcpPair joins two sets by one socket.
func tcpPair(t *testing.T) (u [2]*fakeUpper) {
	t.Helper()
	ln, err := tcp.Listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	a, err := tcp.Dialer{}.Dial(ctx, ln.Addr())
	if err != nil {
		t.Fatal(err)
	}
	b, err := ln.Accept()
	if err != nil {
		t.Fatal(err)
	}
	for i, l := range []transport.Link{a, b} {
		u[i] = &fakeUpper{sources: map[uint64]*Source{}, sinks: map[uint64]*Sink{}, written: map[uint64]bool{},
			filled: map[uint64]bool{}}
		w := &world.World{Rank: i, Clusters: []wire.Cluster{{Name: "a", Size: 1}, {Name: "b", Size: 1}}}
		s, err := New(Config{World: w, Upper: u[i], Lock: new(sync.Mutex),
			Wiring: Wiring{Links: []transport.Link{l}, System: wait.NewLinux()},
			Limits: limits.Limits{DataWindow: limits.MaxDataWindow, EagerWindow: 1 << 20, Segment: limits.DefaultSegment,
				Ping: time.Hour}})
		if err != nil {
			t.Fatal(err)
		}
		u[i].set = s
		t.Cleanup(s.Close)
	}
	return u
}
