package transporttest

import (
	"bytes"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/leidenzipper/zipper/internal/transport"
)

// exchange sends messages of many sizes there and back.
func exchange(t *testing.T, setup Setup) {
	a, b := connect(t, setup)
	if a.Remote() == "" || b.Remote() == "" {
		t.Error("an end does not know its peer's address")
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

// duplex sends random pieces in both directions at once, with reader and writer of an end on
// different threads.
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

// nothing checks that an idle link returns ErrAgain, is not readable, and is writable.
func nothing(t *testing.T, setup Setup) {
	a, b := connect(t, setup)
	for _, l := range []transport.Link{a, b} {
		p := []byte{7}
		if n, err := l.TryRead(p); n != 0 || err != transport.ErrAgain || p[0] != 7 {
			t.Errorf("read of nothing: %d, %v", n, err)
		}
		if l.Arm() {
			t.Error("Arm promises data on an idle link")
		}
		if ready(l.FD(), unix.POLLIN, 20*time.Millisecond) {
			t.Error("an idle link is readable")
		}
		if !ready(l.WriteFD(), unix.POLLOUT, Patience) {
			t.Error("an idle link is not writable")
		}
	}
}

// full fills a link that is not read: it must return ErrAgain within bounds and stop being
// writable. When the peer reads it must be writable again without loss. A level-triggered
// descriptor stays ready as long as the state lasts.
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
			// A socket may take a little more when its peer's acknowledgement arrives.
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

// vectored writes many slices, some of them empty, with one call. It checks that they are taken in
// order and not changed.
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
