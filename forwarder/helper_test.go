package forwarder

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest"
	"golang.org/x/sys/unix"

	"github.com/leidenzipper/zipper/forwarder/clock"
	"github.com/leidenzipper/zipper/forwarder/relay"
	"github.com/leidenzipper/zipper/handshake"
	"github.com/leidenzipper/zipper/internal/dial"
	"github.com/leidenzipper/zipper/internal/transport"
	"github.com/leidenzipper/zipper/internal/transport/tcp"
	"github.com/leidenzipper/zipper/internal/wire"
)

// patience bounds every wait in the tests; only a broken test reaches it.
const patience = 20 * time.Second

// network is a way for ranks to reach the forwarder under test.
type network struct {
	listen func(t *testing.T) transport.Listener
	dial   func(ln transport.Listener) transport.Dialer
}

func tcpNetwork() network {
	return network{
		listen: func(t *testing.T) transport.Listener {
			ln, err := tcp.Listen("127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			return ln
		},
		dial: func(transport.Listener) transport.Dialer { return tcp.Dialer{} },
	}
}

// shiftedClock is the system's clock, put forward.
type shiftedClock struct {
	clock.System
	by atomic.Int64 // nanoseconds
}

func (c *shiftedClock) Now() time.Time { return time.Now().Add(time.Duration(c.by.Load())) }

// bench is a running forwarder.
type bench struct {
	t      *testing.T
	f      *Forwarder
	ln     transport.Listener
	dialer transport.Dialer
	stop   func()        // ends the forwarder and waits for it
	over   chan struct{} // closed when it has ended
	ends   chan Summary
}

func start(t *testing.T, n network, change func(*Config)) *bench {
	t.Helper()
	b := &bench{t: t, ln: n.listen(t), over: make(chan struct{}), ends: make(chan Summary, 64)}
	b.dialer = n.dial(b.ln)
	cfg := Config{Listeners: []transport.Listener{b.ln}, Log: zaptest.NewLogger(t, zaptest.Level(zap.InfoLevel)), Loops: 2, Linger: 2 * time.Second, strict: true,
		JobEnd: func(s Summary) { b.ends <- s }}
	if change != nil {
		change(&cfg)
	}
	f, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	b.f = f
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- f.Serve(ctx); close(b.over) }()
	b.stop = sync.OnceFunc(func() {
		cancel()
		select {
		case err := <-served:
			if err != nil {
				t.Errorf("Serve: %v", err)
			}
		case <-time.After(patience):
			t.Error("Serve does not return")
		}
	})
	t.Cleanup(b.stop)
	return b
}

func (b *bench) ended() Summary {
	b.t.Helper()
	select {
	case s := <-b.ends:
		return s
	case <-time.After(patience):
		b.t.Fatal("the job does not end")
		return Summary{}
	}
}

// named returns the first job of an id, or nil.
func (f *Forwarder) named(id string) *runner {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.jobs[id]) == 0 {
		return nil
	}
	return f.jobs[id][0]
}

// first returns the first connection of a job's bridge to a forwarder, or nil.
func (r *runner) first(zipper int) *peer {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, br := range r.job.View().Bridges { // a job that has just begun has none
		if br.Zipper == zipper {
			return r.conns[br.First()]
		}
	}
	return nil
}

func identity(job, cluster string, rank int, layout ...wire.Cluster) handshake.Identity {
	return handshake.Identity{Job: job, Secret: "s3cret", Cluster: cluster, Rank: rank, Layout: layout, TagUB: 1 << 28,
		Library: "lib-" + cluster, Facts: 1, Host: "host-" + cluster, TimeoutMS: patience.Milliseconds()}
}

// rank is a joined rank.
type rank struct {
	t    *testing.T
	link transport.Link
	wire.Layout
}

func (b *bench) dial(id handshake.Identity) (*rank, error) {
	return b.dialContext(context.Background(), id)
}

func (b *bench) dialContext(ctx context.Context, id handshake.Identity) (*rank, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	d := dial.Dialer{Transport: b.dialer}
	l, layout, err := d.Dial(ctx, b.ln.Addr(), id)
	if err != nil {
		return nil, err
	}
	b.t.Cleanup(func() { l.Close() })
	return &rank{b.t, l, layout}, nil
}

// join joins all ranks of a job and returns them by virtual rank. The first rank of the first
// cluster joins before all others.
func (b *bench) join(job string, layout ...wire.Cluster) []*rank {
	b.t.Helper()
	type result struct {
		r   *rank
		err error
	}
	results := make(chan result)
	n := 0
	for _, c := range layout {
		for i := range int(c.Size) {
			n++
			go func() {
				r, err := b.dial(identity(job, c.Name, i, layout...))
				results <- result{r, err}
			}()
			if n == 1 {
				b.opened(job)
			}
		}
	}
	ranks := make([]*rank, n)
	for range n {
		r := <-results
		if r.err != nil {
			b.t.Fatal(r.err)
		}
		ranks[r.r.Rank] = r.r
	}
	return ranks
}

// opened waits until a job has been opened.
func (b *bench) opened(job string) {
	b.t.Helper()
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(time.Millisecond) {
		for _, j := range b.f.Status().Jobs {
			if j.Job == job {
				return
			}
		}
	}
	b.t.Fatalf("job %s has not been opened", job)
}

func await(fd int, events int16) error {
	end := time.Now().Add(patience)
	for {
		left := time.Until(end)
		if left <= 0 {
			return errors.New("nothing comes")
		}
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: events}}, int(left.Milliseconds())+1)
		if err != nil && err != unix.EINTR {
			return err
		}
		if n > 0 {
			return nil
		}
	}
}

func (r *rank) readFull(p []byte) error {
	for len(p) > 0 {
		n, err := r.link.TryRead(p)
		if err == transport.ErrAgain {
			if r.link.Arm() {
				continue
			}
			if err := await(r.link.FD(), unix.POLLIN); err != nil {
				return err
			}
			continue
		}
		if err != nil {
			return err
		}
		p = p[n:]
	}
	return nil
}

// recv returns the next frame that is not a Count.
func (r *rank) recv() (h wire.Header, body []byte, err error) {
	var head [wire.HeaderLen]byte
	for {
		if err := r.readFull(head[:]); err != nil {
			return wire.Header{}, nil, err
		}
		if h, err = wire.ParseHeader(head[:]); err != nil {
			return h, nil, err
		}
		body = make([]byte, h.Length)
		if err = r.readFull(body); err != nil || h.Type != wire.TypeCount {
			return h, body, err
		}
	}
}

// expect reads the next frame that is not a Count, a Ping or, unless t is Pong, a Pong, and checks
// its type.
func (r *rank) expect(t wire.Type) (wire.Header, []byte) {
	r.t.Helper()
	for {
		h, body, err := r.recv()
		if err != nil {
			r.t.Fatalf("rank %d waits for %v: %v", r.Rank, t, err)
		}
		// an unexpected Pong says that the forwarder does not read from the rank now
		if h.Type == wire.TypePing || h.Type == wire.TypePong && t != wire.TypePong {
			continue
		}
		if h.Type != t {
			r.t.Fatalf("rank %d: got %v %q, want %v", r.Rank, h.Type, body, t)
		}
		return h, body
	}
}

// expectEOF waits for the forwarder to close.
func (r *rank) expectEOF() {
	r.t.Helper()
	for {
		_, _, err := r.recv()
		if err == nil {
			continue
		}
		if !errors.Is(err, io.EOF) && !errors.Is(err, unix.ECONNRESET) {
			r.t.Fatal(err)
		}
		return
	}
}

func (r *rank) write(p []byte) error {
	for len(p) > 0 {
		n, err := r.link.TryWrite(p)
		if err == transport.ErrAgain {
			err = await(r.link.WriteFD(), unix.POLLOUT)
		}
		if err != nil {
			return err
		}
		p = p[n:]
	}
	return nil
}

func (r *rank) send(p []byte) {
	r.t.Helper()
	if err := r.write(p); err != nil {
		r.t.Fatalf("rank %d sends: %v", r.Rank, err)
	}
}

func eager(src, dst, seq int, payload []byte) []byte {
	h := wire.Header{Type: wire.TypeEager, Epoch: 1, Length: uint32(wire.EnvelopeLen + len(payload)), Src: uint32(src),
		Dst: uint32(dst), Seq: uint64(seq)}
	e := wire.Envelope{Tag: 7, Size: uint64(len(payload))}
	return append(e.Append(h.Append(nil)), payload...)
}

func data(src, dst int, offset uint64, payload []byte) []byte {
	h := wire.Header{Type: wire.TypeData, Epoch: 1, Length: uint32(wire.DataLen + len(payload)), Src: uint32(src),
		Dst: uint32(dst)}
	d := wire.Data{Receiver: 1, Offset: offset}
	return append(d.Append(h.Append(nil)), payload...)
}

func header(typ wire.Type, src, dst int) []byte {
	return wire.AppendFrame(nil, wire.Header{Type: typ, Src: uint32(src), Dst: uint32(dst)}, nil)
}

// bye ends the rank's link cleanly.
func (r *rank) bye() {
	r.t.Helper()
	r.send(header(wire.TypeBye, wire.Nobody, wire.Nobody))
	for {
		h, body, err := r.recv()
		if err != nil {
			r.t.Fatalf("rank %d waits for ByeAck: %v", r.Rank, err)
		}
		s, err := wire.ParseRailState(body)
		others := h.Type == wire.TypeRailState && err == nil && s.Departed // the state of a rank that left before
		if h.Type == wire.TypeByeAck {
			break
		}
		if h.Type != wire.TypePing && h.Type != wire.TypePong && !others {
			r.t.Fatalf("rank %d: got %v %q, want ByeAck", r.Rank, h.Type, body)
		}
	}
	r.link.Close()
}

func pattern(n, seed int) []byte {
	p := make([]byte, n)
	for i := range p {
		p[i] = byte(i*7 + i>>8 + seed)
	}
	return p
}

var twoClusters = []wire.Cluster{{Name: "a", Size: 2}, {Name: "b", Size: 2}}

func name(i int) string { return fmt.Sprintf("job-%d", i) }

func pingPong(t *testing.T, a, b *rank) {
	t.Helper()
	a.send(eager(int(a.Rank), int(b.Rank), 1, []byte("ping")))
	if _, body := b.expect(wire.TypeEager); string(body[wire.EnvelopeLen:]) != "ping" {
		t.Errorf("got %q", body)
	}
	b.send(eager(int(b.Rank), int(a.Rank), 1, []byte("pong")))
	if _, body := a.expect(wire.TypeEager); string(body[wire.EnvelopeLen:]) != "pong" {
		t.Errorf("got %q", body)
	}
}

// settled waits until no link and no job is left.
func (b *bench) settled() {
	b.t.Helper()
	for end := time.Now().Add(patience); ; time.Sleep(time.Millisecond) {
		st := b.f.Status()
		if st.Links == 0 && len(st.Jobs) == 0 {
			return
		}
		if time.Now().After(end) {
			b.t.Fatalf("left behind: %+v", st)
		}
	}
}

// peerOf returns the other end of a connection, or nil.
func peerOf(c *relay.Conn) *peer {
	if c == nil {
		return nil
	}
	return c.Control().(control).peer
}

func abortFrame(code int32, rank uint32, reason string) []byte {
	return frame(wire.TypeAbort, &wire.Abort{Code: code, Rank: rank, Reason: reason, By: wire.Nobody})
}
