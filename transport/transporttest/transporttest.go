// Package transporttest checks that a transport keeps the contract of transport.Link. Every transport runs it:
//
//	func TestConformance(t *testing.T) {
//		transporttest.Run(t, func(t *testing.T) (transport.Listener, transport.Dialer) { … })
//	}
package transporttest

import (
	"bytes"
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"os"
	"runtime"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/leidenzipper/zipper/transport"
)

// Patience bounds every wait; only a broken transport reaches it.
const Patience = 20 * time.Second

// maxBuffered is more than any transport may take before it says ErrAgain, in bytes.
const maxBuffered = 64 << 20

// Setup makes a listener at a fresh address and a dialer that reaches it.
type Setup func(t *testing.T) (transport.Listener, transport.Dialer)

// Run runs the whole suite.
func Run(t *testing.T, setup Setup) {
	for _, c := range []struct {
		name string
		test func(*testing.T, Setup)
	}{
		{"Exchange", exchange},
		{"Duplex", duplex},
		{"Nothing", nothing},
		{"Full", full},
		{"Vectored", vectored},
		{"WakeUp", wakeUp},
		{"EndOfStream", endOfStream},
		{"WriteAfterPeerClose", writeAfterPeerClose},
		{"AfterClose", afterClose},
		{"CloseWhileInUse", closeWhileInUse},
		{"ManyLinks", manyLinks},
		{"ListenerClose", listenerClose},
		{"DialNobody", dialNobody},
		{"DialCancelled", dialCancelled},
		{"Descriptors", descriptors},
		{"Allocations", allocations},
		{"Pieces", pieces},
		{"PiecesHeld", piecesHeld},
	} {
		t.Run(c.name, func(t *testing.T) { c.test(t, setup) })
	}
}

// connect returns both ends of a new link.
func connect(t *testing.T, setup Setup) (dialed, accepted transport.Link) {
	t.Helper()
	ln, d := setup(t)
	dialed, accepted = open(t, ln, d)
	ln.Close()
	t.Cleanup(func() {
		dialed.Close()
		accepted.Close()
	})
	return dialed, accepted
}

func open(t *testing.T, ln transport.Listener, d transport.Dialer) (dialed, accepted transport.Link) {
	t.Helper()
	type result struct {
		l   transport.Link
		err error
	}
	got := make(chan result, 1)
	go func() {
		l, err := ln.Accept()
		got <- result{l, err}
	}()
	ctx, cancel := context.WithTimeout(context.Background(), Patience)
	defer cancel()
	dialed, err := d.Dial(ctx, ln.Addr())
	if err != nil {
		ln.Close()
		t.Fatalf("dial: %v", err)
	}
	r := <-got
	if r.err != nil {
		t.Fatalf("accept: %v", r.err)
	}
	return dialed, r.l
}

// ready waits for a descriptor; false at the end of the patience.
func ready(fd int, events int16, patience time.Duration) bool {
	end := time.Now().Add(patience)
	for {
		left := time.Until(end)
		if left < 0 {
			left = 0
		}
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: events}}, int((left+time.Millisecond-1)/time.Millisecond))
		if n > 0 {
			return true
		}
		if err != unix.EINTR && left == 0 {
			return false
		}
	}
}

var errPatience = errors.New("not ready in time")

// ReadFull reads exactly len(p) bytes, waiting as the contract says.
func ReadFull(l transport.Link, p []byte) error {
	for len(p) > 0 {
		n, err := l.TryRead(p)
		if err == transport.ErrAgain && n == 0 {
			if !l.Arm() && !ready(l.FD(), unix.POLLIN, Patience) {
				return errPatience
			}
			continue
		}
		if err != nil {
			return err
		}
		if n <= 0 || n > len(p) {
			return errors.New("TryRead moved an impossible number of bytes without an error")
		}
		p = p[n:]
	}
	return nil
}

// WriteFull writes all of p, waiting as the contract says.
func WriteFull(l transport.Link, p []byte) error {
	for len(p) > 0 {
		n, err := l.TryWrite(p)
		if err == transport.ErrAgain && n == 0 {
			if !ready(l.WriteFD(), unix.POLLOUT, Patience) {
				return errPatience
			}
			continue
		}
		if err != nil {
			return err
		}
		if n <= 0 || n > len(p) {
			return errors.New("TryWrite moved an impossible number of bytes without an error")
		}
		p = p[n:]
	}
	return nil
}

func random(n int, seed uint64) []byte {
	r := rand.New(rand.NewPCG(seed, 0))
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(r.Uint32())
	}
	return b
}

// exchange sends messages of many sizes there and back.
func exchange(t *testing.T, setup Setup) {
	a, b := connect(t, setup)
	if a.Remote() == "" || b.Remote() == "" {
		t.Error("an end does not say who its peer is")
	}
	for _, n := range []int{1, 2, 31, 4095, 4096, 4097, 65536, 1<<20 + 3} {
		for _, dir := range [][2]transport.Link{{a, b}, {b, a}} {
			want, got := random(n, uint64(n)), make([]byte, n)
			sent := make(chan error, 1)
			go func() { sent <- WriteFull(dir[0], want) }()
			if err := ReadFull(dir[1], got); err != nil {
				t.Fatal(err)
			}
			if err := <-sent; err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(got, want) {
				t.Fatalf("%d bytes came out changed", n)
			}
		}
	}
}

// duplex sends random pieces both ways at once, reader and writer of an end on different threads.
func duplex(t *testing.T, setup Setup) {
	a, b := connect(t, setup)
	const total = 2 << 20
	var wg sync.WaitGroup
	for i, dir := range [][2]transport.Link{{a, b}, {b, a}} {
		want := random(total, uint64(100+i))
		wg.Go(func() {
			r := rand.New(rand.NewPCG(1, uint64(i)))
			for rest := want; len(rest) > 0; {
				n := min(len(rest), 1+r.IntN(100000))
				if err := WriteFull(dir[0], rest[:n]); err != nil {
					t.Errorf("write: %v", err)
					dir[0].Close()
					return
				}
				rest = rest[n:]
			}
		})
		wg.Go(func() {
			r := rand.New(rand.NewPCG(2, uint64(i)))
			got := make([]byte, total)
			for rest := got; len(rest) > 0; {
				n := min(len(rest), 1+r.IntN(100000))
				if err := ReadFull(dir[1], rest[:n]); err != nil {
					t.Errorf("read: %v", err)
					dir[1].Close()
					return
				}
				rest = rest[n:]
			}
			if !bytes.Equal(got, want) {
				t.Error("bytes came out changed")
			}
		})
	}
	wg.Wait()
}

// nothing: an idle link says ErrAgain, is not readable, and is writable.
func nothing(t *testing.T, setup Setup) {
	a, b := connect(t, setup)
	for _, l := range []transport.Link{a, b} {
		p := []byte{7}
		if n, err := l.TryRead(p); n != 0 || err != transport.ErrAgain || p[0] != 7 {
			t.Errorf("read of nothing: %d, %v", n, err)
		}
		if l.Arm() {
			t.Error("Arm promises data where there is none")
		}
		if ready(l.FD(), unix.POLLIN, 20*time.Millisecond) {
			t.Error("an idle link is readable")
		}
		if !ready(l.WriteFD(), unix.POLLOUT, Patience) {
			t.Error("an idle link is not writable")
		}
	}
}

// full fills a link that nobody reads: ErrAgain within bounds, not writable; writable again, and nothing lost, when
// the peer reads. A level-triggered descriptor stays ready until the state is gone.
func full(t *testing.T, setup Setup) {
	a, b := connect(t, setup)
	piece := random(100_000, 5)
	sent := 0
	for {
		n, err := a.TryWrite(piece[sent%len(piece):])
		if err == transport.ErrAgain {
			if n != 0 {
				t.Fatalf("ErrAgain with %d bytes", n)
			}
			// A socket may take a little more when its peer's acknowledgement comes.
			if ready(a.WriteFD(), unix.POLLOUT, 50*time.Millisecond) {
				continue
			}
			break
		}
		if err != nil || n <= 0 {
			t.Fatalf("%d, %v", n, err)
		}
		if sent += n; sent > maxBuffered {
			t.Fatalf("takes %d bytes that nobody reads", sent)
		}
	}
	got := make([]byte, sent)
	if !b.Arm() && !ready(b.FD(), unix.POLLIN, Patience) {
		t.Fatal("a full link is not readable")
	}
	if err := ReadFull(b, got[:sent/2]); err != nil {
		t.Fatal(err)
	}
	if err := ReadFull(b, got[sent/2:]); err != nil {
		t.Fatal(err)
	}
	for i := 0; i < sent; i += len(piece) {
		n := min(len(piece), sent-i)
		if !bytes.Equal(got[i:i+n], piece[:n]) {
			t.Fatalf("bytes from %d on came out changed", i)
		}
	}
	if !ready(a.WriteFD(), unix.POLLOUT, Patience) {
		t.Fatal("does not become writable after the peer has read")
	}
	if n, err := a.TryWrite(piece); n <= 0 || err != nil {
		t.Errorf("write after that: %d, %v", n, err)
	}
}

// vectored writes many slices, some empty, with one call, and checks that they are taken in order and left alone.
func vectored(t *testing.T, setup Setup) {
	a, b := connect(t, setup)
	if n, err := a.TryWrite(); n != 0 || err != nil {
		t.Errorf("write of no slices: %d, %v", n, err)
	}
	if n, err := a.TryWrite(nil, []byte{}); n != 0 || err != nil {
		t.Errorf("write of empty slices: %d, %v", n, err)
	}
	whole := random(300_000, 9)
	var bufs [][]byte
	r := rand.New(rand.NewPCG(3, 3))
	for rest := whole; len(rest) > 0; {
		n := min(len(rest), r.IntN(2500))
		bufs = append(bufs, rest[:n:n])
		rest = rest[n:]
	}
	before := make([][]byte, len(bufs))
	copy(before, bufs)
	got := make([]byte, len(whole))
	read := make(chan error, 1)
	go func() { read <- ReadFull(b, got) }()
	off := 0 // bytes sent
	for off < len(whole) {
		rest := bufs
		skip := off
		for len(rest[0]) <= skip {
			skip -= len(rest[0])
			rest = rest[1:]
		}
		rest = append([][]byte{rest[0][skip:]}, rest[1:]...)
		n, err := a.TryWrite(rest...)
		if err == transport.ErrAgain {
			ready(a.WriteFD(), unix.POLLOUT, Patience)
			continue
		}
		if err != nil || n <= 0 {
			t.Fatalf("%d, %v", n, err)
		}
		off += n
	}
	if err := <-read; err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, whole) || !bytes.Equal(whole, random(300_000, 9)) {
		t.Error("bytes came out, or were left behind, changed")
	}
	for i := range bufs {
		if len(bufs[i]) != len(before[i]) {
			t.Fatalf("slice %d was changed", i)
		}
	}
}

// wakeUp plays ping-pong, sleeping for every message: a missed wake-up hangs it.
func wakeUp(t *testing.T, setup Setup) {
	a, b := connect(t, setup)
	const rounds = 1000
	done := make(chan error, 1)
	go func() {
		p := make([]byte, 8)
		for range rounds {
			if err := ReadFull(b, p); err != nil {
				done <- err
				return
			}
			if err := WriteFull(b, p); err != nil {
				done <- err
				return
			}
		}
		done <- nil
	}()
	p := make([]byte, 8)
	for i := range rounds {
		p[0] = byte(i)
		if err := WriteFull(a, p); err != nil {
			t.Fatal(err)
		}
		p[0] = 0
		if err := ReadFull(a, p); err != nil {
			t.Fatalf("round %d: %v", i, err)
		}
		if p[0] != byte(i) {
			t.Fatalf("round %d: got %d", i, p[0])
		}
	}
	if err := <-done; err != nil {
		t.Fatal(err)
	}
}

// endOfStream: what was written before Close is read, then io.EOF, again and again, and the sleeper is woken.
func endOfStream(t *testing.T, setup Setup) {
	a, b := connect(t, setup)
	want := random(3000, 1) // fits into any transport
	if err := WriteFull(a, want); err != nil {
		t.Fatal(err)
	}
	if err := a.Close(); err != nil {
		t.Errorf("close: %v", err)
	}
	got := make([]byte, len(want))
	if err := ReadFull(b, got); err != nil || !bytes.Equal(got, want) {
		t.Fatalf("what was written before the close: %v", err)
	}
	for range 3 {
		if err := ReadFull(b, make([]byte, 1)); err != io.EOF {
			t.Fatalf("at the end: %v, want io.EOF", err)
		}
	}
	c, d := connect(t, setup)
	woken := make(chan error, 1)
	go func() { woken <- ReadFull(d, make([]byte, 1)) }()
	c.Close()
	if err := <-woken; err != io.EOF {
		t.Errorf("sleeper: %v, want io.EOF", err)
	}
}

// writeAfterPeerClose: the writer learns in the end that nobody is there, also one that sleeps on a full link.
func writeAfterPeerClose(t *testing.T, setup Setup) {
	a, b := connect(t, setup)
	failed := make(chan error, 1)
	go func() {
		p := make([]byte, 100_000)
		for {
			if err := WriteFull(a, p); err != nil {
				failed <- err
				return
			}
		}
	}()
	b.Close()
	select {
	case err := <-failed:
		if errors.Is(err, errPatience) || errors.Is(err, transport.ErrAgain) || errors.Is(err, transport.ErrClosed) {
			t.Errorf("writing to nobody: %v", err)
		}
	case <-time.After(Patience):
		t.Error("writing to nobody goes on")
	}
}

// afterClose: every call says ErrClosed, and closing again is harmless.
func afterClose(t *testing.T, setup Setup) {
	a, b := connect(t, setup)
	WriteFull(b, []byte("not read"))
	for range 2 {
		if err := a.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	}
	if n, err := a.TryRead(make([]byte, 1)); n != 0 || err != transport.ErrClosed {
		t.Errorf("read: %d, %v", n, err)
	}
	if n, err := a.TryWrite([]byte{1}); n != 0 || err != transport.ErrClosed {
		t.Errorf("write: %d, %v", n, err)
	}
}

// closeWhileInUse closes links under a reader and a writer on other threads: they get ErrClosed and touch nothing
// that belongs to others meanwhile. For the race detector above all.
func closeWhileInUse(t *testing.T, setup Setup) {
	// More threads than processors: they are interrupted anywhere.
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(8))
	for range 20 {
		a, b := connect(t, setup)
		var wg sync.WaitGroup
		started := make(chan bool, 2)
		for _, use := range []func() error{
			func() error { _, err := a.TryRead(make([]byte, 1000)); return err },
			func() error { _, err := a.TryWrite(make([]byte, 1000)); return err },
		} {
			wg.Go(func() {
				started <- true
				for {
					if err := use(); err != nil && err != transport.ErrAgain {
						if err != transport.ErrClosed {
							t.Errorf("got %v, want ErrClosed", err)
						}
						return
					}
					runtime.Gosched()
				}
			})
		}
		<-started
		<-started
		a.Close()
		wg.Wait()
		b.Close()
	}
}

// manyLinks: links of one listener do not mix.
func manyLinks(t *testing.T, setup Setup) {
	ln, d := setup(t)
	defer ln.Close()
	const n = 16
	var ends [n][2]transport.Link
	for i := range ends {
		ends[i][0], ends[i][1] = open(t, ln, d)
		defer ends[i][0].Close()
		defer ends[i][1].Close()
	}
	for i, e := range ends {
		if err := WriteFull(e[0], []byte{byte(i)}); err != nil {
			t.Fatal(err)
		}
	}
	for i, e := range ends {
		p := []byte{0}
		if err := ReadFull(e[1], p); err != nil || p[0] != byte(i) {
			t.Errorf("link %d: got %d, %v", i, p[0], err)
		}
	}
}

// listenerClose: Accept ends with ErrClosed; links that were made stay.
func listenerClose(t *testing.T, setup Setup) {
	ln, d := setup(t)
	a, b := open(t, ln, d)
	defer a.Close()
	defer b.Close()
	ended := make(chan error, 1)
	go func() {
		_, err := ln.Accept()
		ended <- err
	}()
	ln.Close()
	select {
	case err := <-ended:
		if err != transport.ErrClosed {
			t.Errorf("Accept: %v", err)
		}
	case <-time.After(Patience):
		t.Fatal("Accept does not end")
	}
	if _, err := ln.Accept(); err != transport.ErrClosed {
		t.Errorf("Accept after close: %v", err)
	}
	if err := WriteFull(a, []byte{1}); err != nil {
		t.Error(err)
	}
	if err := ReadFull(b, []byte{0}); err != nil {
		t.Error(err)
	}
}

func dialNobody(t *testing.T, setup Setup) {
	ln, d := setup(t)
	addr := ln.Addr()
	ln.Close()
	ctx, cancel := context.WithTimeout(context.Background(), Patience)
	defer cancel()
	if l, err := d.Dial(ctx, addr); err == nil {
		l.Close()
		t.Error("reached a listener that is closed")
	} else if ctx.Err() != nil {
		t.Errorf("took all the time: %v", err)
	}
}

func dialCancelled(t *testing.T, setup Setup) {
	ln, d := setup(t)
	defer ln.Close()
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if l, err := d.Dial(ctx, ln.Addr()); err == nil {
		l.Close()
		t.Error("dialed although cancelled")
	}
}

// descriptors opens and closes many links, from either end, and counts what is left open.
func descriptors(t *testing.T, setup Setup) {
	ln, d := setup(t)
	defer ln.Close()
	cycle := func(n int) {
		for i := range n {
			a, b := open(t, ln, d)
			a.FD()
			a.WriteFD()
			b.FD()
			b.WriteFD()
			if i%2 == 0 {
				a, b = b, a
			}
			a.Close()
			if err := ReadFull(b, []byte{0}); err != io.EOF {
				t.Fatalf("after the peer's close: %v", err)
			}
			b.Close()
		}
	}
	cycle(5)
	before := countFDs(t)
	cycle(50)
	after := countFDs(t)
	for end := time.Now().Add(Patience); after > before && time.Now().Before(end); after = countFDs(t) {
		runtime.Gosched() // a helper goroutine may still hold one for a moment
	}
	if after > before {
		t.Errorf("%d descriptors before, %d after 50 links", before, after)
	}
}

func countFDs(t *testing.T) int {
	d, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(d)
}

// allocations: moving bytes takes no memory.
func allocations(t *testing.T, setup Setup) {
	a, b := connect(t, setup)
	if f, ok := a.(interface{ Allocates() bool }); ok && f.Allocates() {
		t.Log("this transport is for tests and says that it allocates")
		return
	}
	p, q := make([]byte, 100), make([]byte, 100)
	vec := [][]byte{p[:30], p[30:]}
	if n := testing.AllocsPerRun(200, func() {
		if n, err := a.TryWrite(vec...); n != len(p) || err != nil {
			t.Fatalf("%d, %v", n, err)
		}
		for rest := q; len(rest) > 0; {
			n, err := b.TryRead(rest)
			if err != nil && err != transport.ErrAgain {
				t.Fatal(err)
			}
			rest = rest[n:]
		}
	}); n != 0 {
		t.Errorf("%v allocations for a write and a read", n)
	}
}
