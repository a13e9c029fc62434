package transporttest

import (
	"bytes"
	"context"
	"errors"
	"io"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/leidenzipper/zipper/internal/transport"
)

// wakeUp exchanges messages in turn and sleeps for each one, so that a missed wake-up hangs it.
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

// endOfStream checks that bytes written before Close are read, then io.EOF each time, and that a
// sleeping reader is woken.
func endOfStream(t *testing.T, setup Setup) {
	a, b := connect(t, setup)
	want := random(3000, 1) // small enough for any transport
	if err := WriteFull(a, want); err != nil {
		t.Fatal(err)
	}
	if err := a.Close(); err != nil {
		t.Errorf("close: %v", err)
	}
	got := make([]byte, len(want))
	if err := ReadFull(b, got); err != nil || !bytes.Equal(got, want) {
		t.Fatalf("data written before the close: %v", err)
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

// writeAfterPeerClose checks that the writer gets an error once the peer has closed, also a writer
// that sleeps on a full link.
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
			t.Errorf("writing to a closed peer: %v", err)
		}
	case <-time.After(Patience):
		t.Error("writing to a closed peer goes on")
	}
}

// afterClose checks that every call returns ErrClosed, and that closing again is harmless.
func afterClose(t *testing.T, setup Setup) {
	a, b := connect(t, setup)
	if err := WriteFull(b, []byte("not read")); err != nil {
		t.Fatal(err)
	}
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

// closeWhileInUse closes links under a reader and a writer on other threads. They must get
// ErrClosed and must not touch descriptors that others have got meanwhile. The test is mainly for
// the race detector.
func closeWhileInUse(t *testing.T, setup Setup) {
	// There are more threads than processors, so threads are interrupted anywhere.
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

// manyLinks checks that the bytes of links of one listener do not mix.
func manyLinks(t *testing.T, setup Setup) {
	ln, d := setup.Open(t)
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

// listenerClose checks that Accept ends with ErrClosed, and that accepted links stay open.
func listenerClose(t *testing.T, setup Setup) {
	ln, d := setup.Open(t)
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
	ln, d := setup.Open(t)
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
	ln, d := setup.Open(t)
	defer ln.Close()
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if l, err := d.Dial(ctx, ln.Addr()); err == nil {
		l.Close()
		t.Error("dialed although cancelled")
	}
}

// descriptors opens and closes many links, from either end, and counts the descriptors that stay
// open.
func descriptors(t *testing.T, setup Setup) {
	ln, d := setup.Open(t)
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

// allocations checks that moving bytes does not allocate.
func allocations(t *testing.T, setup Setup) {
	a, b := connect(t, setup)
	if setup.Allocates != "" {
		t.Skip(setup.Allocates)
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
