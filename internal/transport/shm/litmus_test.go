package shm

import (
	"encoding/binary"
	"math/rand/v2"
	"runtime"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/leidenzipper/zipper/internal/transport"
)

// These litmus tests show on processors with a weak memory order whether the two ends of a ring see
// each other's stores in order. An emulator on x86-64 has that processor's strong order.

// TestLitmusRing checks that the bytes of a ring, the last ones first, are there when its counters
// say so, and are not overwritten before they are read. Neither end sleeps.
func TestLitmusRing(t *testing.T) {
	const numbers, most = 4 << 20, 300
	a, b := open(t, 4096)
	wrote := make(chan error, 1)
	go func() {
		runtime.LockOSThread() // two threads, so that they run on two processors
		r := rand.New(rand.NewPCG(1, 2))
		var piece [8 * most]byte
		for i := uint64(0); i < numbers; {
			k := min(numbers-i, 1+r.Uint64N(most))
			for j := range k {
				binary.LittleEndian.PutUint64(piece[8*j:], i+j)
			}
			for left := piece[:8*k]; len(left) > 0; {
				n, err := a.out.write([][]byte{left})
				if err != nil {
					wrote <- err
					return
				}
				left = left[n:]
			}
			i += k
		}
		wrote <- nil
	}()
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	ring, copied := &b.in, make([]byte, 4096)
	for next := uint64(0); next < numbers; {
		head, tail, _, err := ring.used()
		if err != nil {
			t.Fatal(err)
		}
		for at := tail; at != head; at -= 8 {
			if got := binary.LittleEndian.Uint64(ring.bytes[(at-8)%4096:]); got != at/8-1 {
				t.Fatalf("number %d is %d: the counter is seen before the bytes", at/8-1, got)
			}
		}
		n, err := ring.read(copied[:tail-head])
		if err != nil {
			t.Fatal(err)
		}
		for j := 0; j < n; j += 8 {
			if got := binary.LittleEndian.Uint64(copied[j:]); got != next {
				t.Fatalf("number %d is %d: it was overwritten before it was read", next, got)
			}
			next++
		}
	}
	if err := <-wrote; err != nil {
		t.Error(err)
	}
}

// lost is the time after which a wake-up counts as lost.
const lost = 20 * time.Second

// TestLitmusSleep checks that an end that goes to sleep is woken by the only message: each end
// stores that it sleeps and then loads the other's counter, and the other end stores its counter
// and then loads whether this one sleeps, so one of the two must see the other's store.
func TestLitmusSleep(t *testing.T) {
	const rounds = 30000
	a, b := open(t, 4096)
	run := func(l *link, seed uint64, first bool) {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		r := rand.New(rand.NewPCG(seed, 0))
		message := make([]byte, 8)
		for i := range 2 * rounds {
			if (i%2 == 0) == first {
				for range r.IntN(200) { // the peer is on its way to sleep
					l.dead.Load()
				}
				if _, err := l.TryWrite(message); err != nil {
					t.Error(err)
					return
				}
				continue
			}
			for {
				_, err := l.TryRead(message)
				if err == nil {
					break
				} else if err != transport.ErrAgain {
					t.Error(err)
					return
				}
				p := []unix.PollFd{{Fd: int32(l.FD()), Events: unix.POLLIN}}
				if l.Arm() {
					continue
				}
				if n, err := unix.Poll(p, int(lost/time.Millisecond)); n != 1 && err != unix.EINTR {
					t.Errorf("round %d: not woken (%v)", i/2, err)
					l.Close()
					return
				}
			}
		}
	}
	ended := make(chan struct{})
	go func() { run(a, 1, true); close(ended) }()
	run(b, 2, false)
	<-ended
}
