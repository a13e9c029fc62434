package forwarder

import (
	"bytes"
	"context"
	"errors"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/leidenzipper/zipper/handshake"
	"github.com/leidenzipper/zipper/transport"
	"github.com/leidenzipper/zipper/transport/memnet"
	"github.com/leidenzipper/zipper/transport/shm"
	"github.com/leidenzipper/zipper/transport/transporttest"
	"github.com/leidenzipper/zipper/wire"
)

// memoryNetwork keeps little on its way, so that queues fill early.
func memoryNetwork(opt memnet.Options) network {
	var n *memnet.Network
	return network{
		listen: func(t *testing.T) transport.Listener {
			n = memnet.New(opt)
			ln, err := n.Listen("zip")
			if err != nil {
				t.Fatal(err)
			}
			return ln
		},
		dial: func(transport.Listener) transport.Dialer { return n },
	}
}

func shmNetwork() network {
	return network{
		listen: func(t *testing.T) transport.Listener {
			ln, err := shm.Listen(filepath.Join(t.TempDir(), "s"), 1<<16)
			if err != nil {
				t.Fatal(err)
			}
			return ln
		},
		dial: func(transport.Listener) transport.Dialer { return shm.Dialer{} },
	}
}

func networks() map[string]network {
	return map[string]network{"tcp": tcpNetwork(), "shm": shmNetwork(), "memnet": memoryNetwork(memnet.Options{Partial: 7}),
		"pieces": memoryNetwork(memnet.Options{Partial: 7, Pieces: 4})}
}

// stream sends n random frames to each of dst, interleaved: eager ones numbered in Seq, and Data numbered in Offset.
func (r *rank) stream(n int, dst ...int) error {
	rnd := rand.New(rand.NewPCG(uint64(r.Rank), 1))
	eagers, datas := map[int]int{}, map[int]int{}
	for range n {
		for _, d := range dst {
			size := rnd.IntN(200)
			if rnd.IntN(4) == 0 {
				size = rnd.IntN(150_000)
			}
			var f []byte
			if rnd.IntN(2) == 0 {
				eagers[d]++
				f = eager(int(r.Rank), d, eagers[d], pattern(size, eagers[d]))
			} else {
				datas[d]++
				f = data(int(r.Rank), d, uint64(datas[d]), pattern(size, datas[d]))
				if l, ok := r.link.(transport.Lender); ok && size > 100 && len(f) <= l.MaxPiece() {
					if err := transporttest.SendPiece(l, f[:passHead], f[passHead:]); err != nil {
						return err
					}
					continue
				}
			}
			if err := r.write(f); err != nil {
				return err
			}
		}
	}
	return nil
}

// drain reads n frames and checks that each class of each source comes in order and unchanged.
func (r *rank) drain(n int) error {
	eagers, datas := map[uint32]uint64{}, map[uint32]uint64{}
	for got := 0; got < n; {
		h, body, err := r.recv()
		if err != nil {
			return err
		}
		var seq, last uint64
		switch h.Type {
		case wire.TypePing:
			continue
		case wire.TypeEager:
			seq, last = h.Seq, eagers[h.Src]
			eagers[h.Src]++
			body = body[wire.EnvelopeLen:]
		case wire.TypeData:
			d, err := wire.ParseData(body)
			if err != nil {
				return err
			}
			seq, last = d.Offset, datas[h.Src]
			datas[h.Src]++
			body = body[wire.DataLen:]
		default:
			return errors.New(h.Type.String() + " " + string(body))
		}
		if seq != last+1 {
			return errors.New("out of order")
		}
		if h.Dst != r.Rank || !bytes.Equal(body, pattern(len(body), int(seq))) {
			return errors.New("changed or misled")
		}
		got++
	}
	return nil
}

// TestStreams: everybody sends to everybody at once, in every network.
func TestStreams(t *testing.T) {
	for name, n := range networks() {
		t.Run(name, func(t *testing.T) {
			b := start(t, n, nil)
			r := b.join("j", wire.Cluster{Name: "a", Size: 2}, wire.Cluster{Name: "b", Size: 1}, wire.Cluster{Name: "c", Size: 1})
			const frames = 150
			var wg sync.WaitGroup
			for i, x := range r {
				var others []int
				for k := range r {
					if k != i {
						others = append(others, k)
					}
				}
				wg.Go(func() {
					if err := x.stream(frames, others...); err != nil {
						t.Errorf("rank %d sends: %v", i, err)
						x.link.Close()
					}
				})
				wg.Go(func() {
					if err := x.drain(frames * len(others)); err != nil {
						t.Errorf("rank %d receives: %v", i, err)
						x.link.Close()
					}
				})
			}
			wg.Wait()
			if t.Failed() {
				return
			}
			for _, x := range r {
				x.bye()
			}
			s := b.ended()
			total := uint64(0)
			for _, tr := range s.Traffic {
				total += tr.Frames
			}
			if !s.OK || total != frames*12 || len(s.Traffic) != 7 { // 6 directions and a→a
				t.Errorf("summary %+v", s)
			}
			passed := uint64(0)
			for _, tr := range s.Traffic {
				passed += tr.PassedBytes
			}
			if (passed > 0) != (name == "pieces") {
				t.Errorf("%d bytes were passed on without a copy", passed)
			}
			if st := b.f.Status(); st.Links != 0 || len(st.Jobs) != 0 || len(st.Past) != 1 {
				t.Errorf("left behind: %+v", st)
			}
		})
	}
}

// TestStalledReader: a rank that does not read keeps nobody else from being served, and loses nothing.
func TestStalledReader(t *testing.T) {
	for name, n := range networks() {
		t.Run(name, func(t *testing.T) {
			b := start(t, n, nil)
			r := b.join("j", twoClusters...)
			const frames, size = 200, 100_000 // far more than any transport keeps
			for i := range frames {
				r[0].send(eager(0, 2, i+1, pattern(size, i)))
			}
			for i := range 50 { // the same source goes on, and so do others
				r[0].send(eager(0, 3, i+1, nil))
				r[3].expect(wire.TypeEager)
				r[3].send(eager(3, 1, i+1, nil))
				r[1].expect(wire.TypeEager)
			}
			if q := b.f.Status().Jobs[0].QueuedBytes; q < 1<<20 {
				t.Errorf("only %d bytes are queued: not stalled at all", q)
			}
			for i := range frames {
				h, body := r[2].expect(wire.TypeEager)
				if h.Seq != uint64(i+1) || !bytes.Equal(body[wire.EnvelopeLen:], pattern(size, i)) {
					t.Fatalf("frame %d: %+v", i, h)
				}
			}
			for _, x := range r {
				x.bye()
			}
			b.ended()
		})
	}
}

// TestSmallOvertakesBulk: what waits for a slow reader is sorted: small frames first, order kept inside a class.
func TestSmallOvertakesBulk(t *testing.T) {
	b := start(t, memoryNetwork(memnet.Options{Buffer: 1000}), nil)
	r := b.join("j", twoClusters...)
	for i := range 20 {
		r[0].send(data(0, 2, uint64(i), pattern(5000, i)))
	}
	for i := range 10 {
		r[0].send(eager(0, 2, i+1, nil))
	}
	r[0].send(eager(0, 3, 1, nil)) // when this is through, all of the above is queued
	r[3].expect(wire.TypeEager)
	if _, body := r[2].expect(wire.TypeData); body[8] != 0 {
		t.Errorf("first frame is number %d", body[8])
	}
	for i := range 10 {
		if h, _ := r[2].expect(wire.TypeEager); h.Seq != uint64(i+1) {
			t.Errorf("small frame %d comes as %d", h.Seq, i+1)
		}
	}
	for i := range 19 {
		if _, body := r[2].expect(wire.TypeData); int(body[8]) != i+1 || !bytes.Equal(body[wire.DataLen:], pattern(5000, i+1)) {
			t.Errorf("bulk frame %d comes as %d", body[8], i+1)
		}
	}
}

// TestBeyondCredit: who sends more than any credit allows is put out; the stalled rank and other jobs are not.
func TestBeyondCredit(t *testing.T) {
	for name, c := range map[string]struct {
		frame func(i int) []byte
		want  string
	}{
		"payload": {func(i int) []byte { return eager(0, 2, i+1, make([]byte, 10_000)) }, "more than its credit"},
		"control": {func(int) []byte { return header(wire.TypeAck, 0, 2) }, "too many messages"},
	} {
		t.Run(name, func(t *testing.T) {
			b := start(t, memoryNetwork(memnet.Options{Buffer: 1000}), func(c *Config) { c.FlowLimit, c.ControlLimit = 200_000, 100_000 })
			other := b.join("other", twoClusters...)
			r := b.join("j", twoClusters...)
			var err error
			for i := 0; i < 10_000 && err == nil; i++ {
				err = r[0].write(c.frame(i)) // fails when the forwarder has closed the link
				if n, _ := r[0].link.TryRead(make([]byte, 1)); n > 0 {
					break
				}
			}
			_, body := r[1].expect(wire.TypeAbort)
			a, err := wire.ParseAbort(body)
			if err != nil || a.Rank != 0 || !strings.Contains(a.Reason, c.want) || !strings.Contains(a.Reason, "rank 0 of cluster a on host host-a") {
				t.Errorf("abort %+v, %v", a, err)
			}
			pingPong(t, other[0], other[2])
			for _, x := range r {
				x.link.Close()
			}
			if s := b.ended(); s.OK || s.Job != "j" {
				t.Errorf("summary %+v", s)
			}
		})
	}
}

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

// TestBadFrames: nonsense ends the link it came over, with a reason, and the job of that link; nothing else.
func TestBadFrames(t *testing.T) {
	raw := func(change func(*wire.Header)) []byte {
		h := wire.Header{Type: wire.TypeAck, Src: 0, Dst: 2}
		change(&h)
		return h.Append(nil)
	}
	b := start(t, tcpNetwork(), nil)
	other := b.join("other", twoClusters...)
	for name, c := range map[string]struct {
		bytes []byte
		want  string
	}{
		"spoofed source":  {raw(func(h *wire.Header) { h.Src = 1 }), "source 1 from rank 0"},
		"unknown rank":    {raw(func(h *wire.Header) { h.Dst = 4 }), "for rank 4 of 4"},
		"nobody":          {raw(func(h *wire.Header) { h.Dst = wire.Nobody }), "for rank 4294967295"},
		"oversized":       {raw(func(h *wire.Header) { h.Length = 1 << 30 }), "at most"},
		"wrong length":    {raw(func(h *wire.Header) { h.Length = 1 }), "want 0 to 0"},
		"unknown type":    {raw(func(h *wire.Header) { h.Type = 200 }), "unknown frame type"},
		"a second join":   {raw(func(h *wire.Header) { h.Type, h.Length = wire.TypeJoin, 100 }), "Join frame in a running job"},
		"text":            {[]byte("GET / HTTP/1.1\r\nHost: zip\r\n\r\n......"), "frame"},
		"after good ones": {append(eager(0, 2, 1, []byte("good")), bytes.Repeat([]byte{0xff}, 100)...), "frame"},
		"bad abort":       {append(raw(func(h *wire.Header) { h.Type, h.Length = wire.TypeAbort, 3 }), 1, 2, 3), "short frame"},
	} {
		t.Run(name, func(t *testing.T) {
			b.t = t
			r := b.join("bad", twoClusters...)
			r[0].send(c.bytes)
			for _, x := range r {
				if name == "after good ones" && x.Rank == 2 {
					x.expect(wire.TypeEager)
				}
				_, body := x.expect(wire.TypeAbort)
				a, err := wire.ParseAbort(body)
				if err != nil || a.Rank != 0 || a.Code == 0 || !strings.Contains(a.Reason, c.want) {
					t.Errorf("rank %d is told %+v, %v", x.Rank, a, err)
				}
				x.link.Close()
			}
			if s := b.ended(); s.OK || !strings.Contains(s.Reason, "broke the protocol") {
				t.Errorf("summary %+v", s)
			}
			pingPong(t, other[0], other[3])
		})
	}
}

// TestGarbageInsteadOfJoin comes from strangers; a job on the same forwarder does not notice.
func TestGarbageInsteadOfJoin(t *testing.T) {
	b := start(t, tcpNetwork(), nil)
	other := b.join("other", twoClusters...)
	for name, p := range map[string][]byte{
		"text":       []byte("SSH-2.0-OpenSSH_9.2p1 Debian-2+deb12u3\r\n"),
		"zeros":      make([]byte, 1000),
		"eager":      eager(0, 1, 1, nil),
		"huge":       data(0, 1, 0, make([]byte, wire.MaxPayload))[:wire.HeaderLen],
		"bad join":   wire.AppendFrame(nil, wire.Header{Type: wire.TypeJoin}, &wire.Join{Version: wire.Version}),
		"forged":     wire.AppendFrame(nil, wire.Header{Type: wire.TypeJoin}, &wire.Join{Version: wire.Version, Job: "other", Cluster: "a", Layout: twoClusters}),
		"half":       make([]byte, 1),
		"bye":        header(wire.TypeBye, 0, 0),
		"join twice": bytes.Repeat(wire.AppendFrame(nil, wire.Header{Type: wire.TypeJoin}, &wire.Join{Version: 77}), 2),
	} {
		l, err := b.dialer.Dial(context.Background(), b.ln.Addr())
		if err != nil {
			t.Fatal(err)
		}
		x := &rank{t: t, link: l}
		x.expect(wire.TypeChallenge)
		x.send(p)
		if name != "half" {
			_, body := x.expect(wire.TypeRefuse)
			if f, err := wire.ParseRefuse(body); err != nil || f.Reason == "" {
				t.Errorf("%s: refused with %+v, %v", name, f, err)
			}
		}
		l.Close()
	}
	pingPong(t, other[0], other[2])
	for _, x := range other {
		x.bye()
	}
	b.ended()
	b.settled()
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

func TestRefusedJoins(t *testing.T) {
	b := start(t, tcpNetwork(), func(c *Config) { c.Jobs = []string{"j"} })
	waiting := make(chan error, 1)
	go func() {
		_, err := b.dial(identity("j", "a", 0, twoClusters...))
		waiting <- err
	}()
	for len(b.f.Status().Jobs) == 0 {
		time.Sleep(time.Millisecond)
	}
	for name, c := range map[string]struct {
		change func(*handshake.Identity)
		code   wire.RefuseCode
	}{
		"secret": {func(i *handshake.Identity) { i.Secret = "x" }, wire.RefuseSecret},
		"job":    {func(i *handshake.Identity) { i.Job = "k" }, wire.RefuseJob},
		"layout": {func(i *handshake.Identity) { i.Layout = []wire.Cluster{{Name: "a", Size: 2}, {Name: "b", Size: 3}} }, wire.RefuseLayout},
		"taken":  {func(i *handshake.Identity) { i.Cluster, i.Rank = "a", 0 }, wire.RefuseTaken},
		"model":  {func(i *handshake.Identity) { i.Model = "other" }, wire.RefuseModel},
	} {
		id := identity("j", "b", 1, twoClusters...)
		c.change(&id)
		_, err := b.dial(id)
		var r *handshake.Refused
		if !errors.As(err, &r) || r.Code != c.code || !r.Remote || !strings.Contains(err.Error(), b.ln.Addr()) {
			t.Errorf("%s: %v", name, err)
		}
	}
	// None of them has left a trace.
	last := identity("j", "a", 1, twoClusters...)
	last.Timeout = 100 * time.Millisecond
	_, err := b.dial(last)
	for _, err := range []error{err, <-waiting} {
		var r *handshake.Refused
		if !errors.As(err, &r) || r.Code != wire.RefuseTimeout || !strings.HasSuffix(r.Reason, "missing: cluster b (2 ranks)") {
			t.Errorf("at the time-out: %v", err)
		}
	}
	b.settled()
	if len(b.ends) != 0 {
		t.Error("a job that never ran has a summary")
	}
}

// TestTimeoutTellsEverybody: the first patience that ends counts for all.
func TestTimeoutTellsEverybody(t *testing.T) {
	b := start(t, tcpNetwork(), nil)
	errs := make(chan error)
	for i := range 2 {
		go func() {
			id := identity("j", "a", i, twoClusters...)
			if i == 1 {
				id.Timeout = 300 * time.Millisecond
			}
			_, err := b.dial(id)
			errs <- err
		}()
	}
	for range 2 {
		if err := <-errs; err == nil || !strings.Contains(err.Error(), "missing: cluster b (2 ranks)") {
			t.Errorf("got %v", err)
		}
	}
	b.settled()
	// The job id is free again, with another secret even.
	r := b.join("j", twoClusters...)
	pingPong(t, r[0], r[3])
}

// TestRankLeavesBeforeStart gives its place free: a half may be started again.
func TestRankLeavesBeforeStart(t *testing.T) {
	b := start(t, tcpNetwork(), nil)
	ctx, cancel := context.WithCancel(context.Background())
	gone := make(chan error, 1)
	go func() {
		_, err := b.dialContext(ctx, identity("j", "a", 0, twoClusters...))
		gone <- err
	}()
	for len(b.f.Status().Jobs) == 0 {
		time.Sleep(time.Millisecond)
	}
	cancel()
	if err := <-gone; !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled join: %v", err)
	}
	b.settled()
	b.join("j", twoClusters...)
}

// TestDeadRank: a link that ends without Bye takes the job with it, and everybody is told who.
func TestDeadRank(t *testing.T) {
	for name, n := range networks() {
		t.Run(name, func(t *testing.T) {
			b := start(t, n, nil)
			r := b.join("j", twoClusters...)
			r[3].link.Close()
			for _, x := range r[:3] {
				_, body := x.expect(wire.TypeAbort)
				a, err := wire.ParseAbort(body)
				if err != nil || a.Rank != 3 || a.Code != 1 || !strings.Contains(a.Reason, "virtual rank 3 (rank 1 of cluster b on host host-b") {
					t.Errorf("abort %+v, %v", a, err)
				}
				x.link.Close()
			}
			if s := b.ended(); s.OK || s.Code != 1 || !strings.Contains(s.Reason, "rank 1 of cluster b") {
				t.Errorf("summary %+v", s)
			}
			b.settled()
		})
	}
}

// TestAbort passes MPI_Abort's code to everybody, past all that waits.
func TestAbort(t *testing.T) {
	b := start(t, tcpNetwork(), nil)
	r := b.join("j", twoClusters...)
	for i := range 100 {
		r[0].send(data(0, 2, uint64(i), make([]byte, 200_000)))
	}
	r[0].send(wire.AppendFrame(nil, wire.Header{Type: wire.TypeAbort, Src: 0, Dst: wire.Nobody}, &wire.Abort{Code: 42, Rank: 0, Reason: "MPI_Abort"}))
	for _, x := range r {
		for {
			h, body, err := x.recv()
			if err != nil {
				t.Fatalf("rank %d: %v", x.Rank, err)
			}
			if h.Type == wire.TypeData {
				continue
			}
			a, err := wire.ParseAbort(body)
			if err != nil || a.Code != 42 || a.Rank != 0 || a.Reason != "MPI_Abort" {
				t.Errorf("rank %d: %v %+v, %v", x.Rank, h.Type, a, err)
			}
			break
		}
		x.link.Close()
	}
	if s := b.ended(); s.Code != 42 || s.OK {
		t.Errorf("summary %+v", s)
	}
}

// TestLingerEnds: ranks that do not close after Abort do not keep the job for ever.
func TestLingerEnds(t *testing.T) {
	b := start(t, tcpNetwork(), func(c *Config) { c.Linger = 100 * time.Millisecond })
	r := b.join("j", twoClusters...)
	r[0].link.Close()
	if s := b.ended(); s.OK {
		t.Errorf("summary %+v", s)
	}
	b.settled()
	r[1].expect(wire.TypeAbort)
	r[1].expectEOF()
}

// TestTwoJobs: same cluster names, other secrets, same time.
func TestTwoJobs(t *testing.T) {
	b := start(t, memoryNetwork(memnet.Options{Partial: 3}), nil)
	var wg sync.WaitGroup
	for i := range 4 {
		wg.Go(func() {
			r := b.join(name(i), twoClusters...)
			for range 100 {
				pingPong(t, r[i%2], r[2+i/2])
			}
			for _, x := range r {
				x.bye()
			}
		})
	}
	wg.Wait()
	for range 4 {
		s := b.ended()
		if !s.OK || s.Traffic[0].Messages != 100 || s.Traffic[1].Messages != 100 || s.Traffic[0].PayloadBytes != 400 {
			t.Errorf("summary %+v", s)
		}
	}
	b.settled()
}

// TestHalfDead: a peer that says nothing, though asked, is dead; one that answers is not, however idle.
func TestHalfDead(t *testing.T) {
	b := start(t, tcpNetwork(), func(c *Config) { c.Loops, c.PingInterval, c.PeerTimeout = 1, 10*time.Second, time.Minute })
	r := b.join("j", twoClusters...)
	idle := func(d time.Duration, ranks ...*rank) { // has the forwarder believe that nothing came from them for that much longer
		b.f.mu.Lock()
		defer b.f.mu.Unlock()
		for _, x := range ranks {
			c := b.f.jobs["j"].table[x.Rank].Load()
			c.loop.post(func() { c.heard = c.heard.Add(-d) })
		}
	}
	gets := func(x *rank, want wire.Type) {
		t.Helper()
		if h, body, err := x.recv(); err != nil || h.Type != want {
			t.Fatalf("rank %d gets %v %q, %v, want %v", x.Rank, h.Type, body, err, want)
		}
	}
	answers := func(ranks ...*rank) {
		t.Helper()
		for _, x := range ranks {
			gets(x, wire.TypePing)
			x.send(header(wire.TypePong, wire.Nobody, wire.Nobody))
			x.send(header(wire.TypePing, wire.Nobody, wire.Nobody))
			gets(x, wire.TypePong) // now the forwarder has heard it
		}
	}
	idle(10*time.Second, r...)
	answers(r[:3]...)
	gets(r[3], wire.TypePing)
	idle(30*time.Second, r...)
	answers(r[:3]...) // and nobody is dead
	idle(30*time.Second, r...)
	for _, x := range r[:3] {
		_, body := x.expect(wire.TypeAbort)
		if a, err := wire.ParseAbort(body); err != nil || a.Rank != 3 || !strings.Contains(a.Reason, "no answer for 1m0s") {
			t.Errorf("rank %d: %+v, %v", x.Rank, a, err)
		}
	}
}

func TestPingIsAnswered(t *testing.T) {
	b := start(t, tcpNetwork(), nil)
	r := b.join("j", twoClusters...)
	r[0].send(header(wire.TypePing, wire.Nobody, wire.Nobody))
	r[0].expect(wire.TypePong)
}

// TestNoJoin: who connects and says nothing is shown out.
func TestNoJoin(t *testing.T) {
	b := start(t, tcpNetwork(), func(c *Config) { c.JoinTimeout = 100 * time.Millisecond })
	l, err := b.dialer.Dial(context.Background(), b.ln.Addr())
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	x := &rank{t: t, link: l}
	x.expect(wire.TypeChallenge)
	if _, body := x.expect(wire.TypeRefuse); !strings.Contains(string(body), "no Join within 100ms") {
		t.Errorf("refused with %q", body)
	}
}

// TestShutdown tells everybody.
func TestShutdown(t *testing.T) {
	b := start(t, tcpNetwork(), nil)
	r := b.join("j", twoClusters...)
	waits := make(chan error, 1)
	go func() {
		_, err := b.dial(identity("k", "a", 0, twoClusters...))
		waits <- err
	}()
	for len(b.f.Status().Jobs) < 2 {
		time.Sleep(time.Millisecond)
	}
	stopped := make(chan bool)
	go func() {
		b.stop()
		close(stopped)
	}()
	for _, x := range r {
		_, body := x.expect(wire.TypeAbort)
		if a, err := wire.ParseAbort(body); err != nil || a.Rank != wire.Nobody || !strings.Contains(a.Reason, "shutting down") {
			t.Errorf("abort %+v, %v", a, err)
		}
		x.link.Close()
	}
	var refused *handshake.Refused
	if err := <-waits; !errors.As(err, &refused) || refused.Code != wire.RefuseShutdown {
		t.Errorf("waiting rank: %v", err)
	}
	<-stopped
	if _, err := b.dialer.Dial(context.Background(), b.ln.Addr()); err == nil {
		t.Error("still listening")
	}
}

// TestLateFrames: credit and acknowledgements for a rank that has said Bye are dropped; Bye waits for what is queued.
func TestLateFrames(t *testing.T) {
	b := start(t, memoryNetwork(memnet.Options{Buffer: 500}), nil)
	r := b.join("j", twoClusters...)
	for i := range 20 {
		r[0].send(eager(0, 2, i+1, pattern(3000, i)))
	}
	pingPong(t, r[0], r[3]) // now the above is queued
	r[2].send(header(wire.TypeBye, wire.Nobody, wire.Nobody))
	for range 20 {
		r[2].expect(wire.TypeEager)
	}
	r[2].expect(wire.TypeByeAck)
	r[0].send(header(wire.TypeAck, 0, 2))
	pingPong(t, r[0], r[3])
	r[2].link.Close()
	for _, x := range []*rank{r[0], r[1], r[3]} {
		x.bye()
	}
	if s := b.ended(); !s.OK {
		t.Errorf("summary %+v", s)
	}
}

// TestPingFlood: answers that nobody reads do not pile up for ever.
func TestPingFlood(t *testing.T) {
	b := start(t, memoryNetwork(memnet.Options{Buffer: 1000}), func(c *Config) { c.ControlLimit = 20_000; c.Linger = 200 * time.Millisecond })
	r := b.join("j", twoClusters...)
	go func() {
		pings := bytes.Repeat(header(wire.TypePing, wire.Nobody, wire.Nobody), 30)
		for r[0].write(pings) == nil {
		}
	}()
	_, body := r[1].expect(wire.TypeAbort)
	if a, err := wire.ParseAbort(body); err != nil || a.Rank != 0 || !strings.Contains(a.Reason, "does not read the answers") {
		t.Errorf("abort %+v, %v", a, err)
	}
	for _, x := range r[1:] {
		x.link.Close()
	}
	b.ended()
	b.settled()
}

// slowLayouts is a network in which a Layout takes a while to write.
type slowLayouts struct{ transport.Listener }

func (s slowLayouts) Accept() (transport.Link, error) {
	l, err := s.Listener.Accept()
	return slowLayout{l}, err
}

type slowLayout struct{ transport.Link }

func (s slowLayout) TryWrite(bufs ...[]byte) (int, error) {
	if wire.Type(bufs[0][0]) == wire.TypeLayout {
		time.Sleep(5 * time.Millisecond)
	}
	return s.Link.TryWrite(bufs...)
}

// TestBadFrameAtStart: nonsense from a rank that has its Layout before the others have theirs ends the job all the same.
func TestBadFrameAtStart(t *testing.T) {
	b := start(t, tcpNetwork(), func(c *Config) {
		c.Loops = 4
		c.Listeners[0] = slowLayouts{c.Listeners[0]}
	})
	const ranks = 8
	layout := []wire.Cluster{{Name: "a", Size: 1}, {Name: "b", Size: ranks - 1}}
	for round := range 5 {
		var wg sync.WaitGroup
		for i := range ranks {
			id := identity(name(round), "b", i-1, layout...)
			if i == 0 {
				id = identity(name(round), "a", 0, layout...)
			}
			wg.Go(func() {
				x, err := b.dial(id)
				if err != nil {
					t.Errorf("rank %d: %v", i, err)
					return
				}
				if i == 0 {
					x.send(bytes.Repeat([]byte{200}, wire.HeaderLen))
				}
				if h, _, err := x.recv(); err != nil || h.Type != wire.TypeAbort {
					t.Errorf("rank %d gets %v, %v", i, h.Type, err)
				}
				x.link.Close()
			})
		}
		wg.Wait()
		if t.Failed() {
			return
		}
		if s := b.ended(); s.OK || !strings.Contains(s.Reason, "broke the protocol") {
			t.Errorf("summary %+v", s)
		}
	}
}

// TestNoFrameBeforeLayout: the first rank that hears of the job's start writes to all others at once; each of them
// must see its Layout before that.
func TestNoFrameBeforeLayout(t *testing.T) {
	b := start(t, tcpNetwork(), func(c *Config) {
		c.Loops = 4
		c.Listeners[0] = slowLayouts{c.Listeners[0]}
	})
	const ranks = 8
	layout := []wire.Cluster{{Name: "a", Size: 1}, {Name: "b", Size: ranks - 1}}
	for round := range 5 {
		var wg sync.WaitGroup
		for i := range ranks {
			id := identity(name(round), "b", i-1, layout...)
			if i == 0 {
				id = identity(name(round), "a", 0, layout...)
			}
			wg.Go(func() {
				x, err := b.dial(id)
				if err != nil {
					t.Errorf("rank %d: %v", i, err)
					return
				}
				if i == 0 {
					for k := 1; k < ranks; k++ {
						x.send(eager(0, k, 1, nil))
					}
				} else if h, _, err := x.recv(); err != nil || h.Type != wire.TypeEager {
					t.Errorf("rank %d gets %v, %v", i, h.Type, err)
				}
				x.send(header(wire.TypeBye, wire.Nobody, wire.Nobody))
			})
		}
		wg.Wait()
		if t.Failed() {
			return
		}
	}
	for range 5 {
		if s := b.ended(); !s.OK || s.Traffic[0].Messages != ranks-1 {
			t.Errorf("summary %+v", s)
		}
	}
}
