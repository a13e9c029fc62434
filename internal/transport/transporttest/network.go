package transporttest

import (
	"bytes"
	"errors"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/leidenzipper/zipper/internal/transport"
	"github.com/leidenzipper/zipper/internal/transport/splice"
)

// unheard checks that a peer which is there counts as heard, busy or not, and that nothing is known
// of a closed link's peer unless the link needs no network.
func unheard(t *testing.T, setup Setup) {
	a, b := connect(t, setup)
	if err := WriteFull(a, make([]byte, 1000)); err != nil {
		t.Fatal(err)
	}
	for _, l := range []transport.Link{a, b} {
		if d, _ := l.(transport.Listening).Unheard(); d != 0 {
			t.Errorf("%s is unheard for %v", l.Remote(), d)
		}
	}
	a.Close()
	if d, _ := a.(transport.Listening).Unheard(); d != 0 {
		t.Errorf("unheard for %v over a closed link", d)
	}
}

// packet checks that the size of a packet is in bytes, the same at each call, and 0 after Close,
// and that it may be written at once.
func packet(t *testing.T, setup Setup) {
	a, _ := connect(t, setup)
	p := a.(transport.Packeted)
	n := p.Packet()
	if n < 0 || n > maxBuffered || n != p.Packet() {
		t.Fatalf("packets of %d bytes, then %d", n, p.Packet())
	}
	if k, err := a.TryWrite(make([]byte, max(n, 1))); k != max(n, 1) || err != nil {
		t.Errorf("wrote %d of %d bytes: %v", k, n, err)
	}
	a.Close()
	if n := p.Packet(); n != 0 {
		t.Errorf("packets of %d bytes over a closed link", n)
	}
}

// home checks that the address of one end is that which the other end has for it, apart from zones
// and mapped addresses.
func home(t *testing.T, setup Setup) {
	a, b := connect(t, setup)
	here, there := a.(transport.Homed).Home()
	here2, there2 := b.(transport.Homed).Home()
	if here != there2 || there != here2 || !here.IsValid() || !there.IsValid() {
		t.Errorf("%v to %v, and %v to %v at the other end", here, there, here2, there2)
	}
	for _, a := range []interface {
		Is4In6() bool
		Zone() string
	}{here, there} {
		if a.Is4In6() || a.Zone() != "" {
			t.Errorf("address %v", a)
		}
	}
}

// path checks that measurements exist for a link that has been used, that its busy time grows with
// its traffic, and that none exist for a closed link. A link must carry bytes as before after Far.
func path(t *testing.T, setup Setup) {
	a, b := connect(t, setup)
	l := a.(transport.Distant)
	l.UseLongPath()
	var p transport.Path
	known := true
	for i := 0; i < 1000 && known && p.Busy == 0; i++ { // the system counts in ticks of some milliseconds
		done := make(chan error, 1)
		go func() { done <- WriteFull(a, make([]byte, 4<<20)) }()
		if err := errors.Join(ReadFull(b, make([]byte, 4<<20)), <-done); err != nil {
			t.Fatal(err)
		}
		p, known = l.Path()
	}
	if !known || p.RoundTrip <= 0 || p.RoundTrip > time.Minute || p.Busy <= 0 || p.Short < 0 || p.Short > p.Busy {
		t.Errorf("%+v, known: %v", p, known)
	}
	a.Close()
	l.UseLongPath()
	if _, known := l.Path(); known {
		t.Error("the path of a closed link is known")
	}
}

// piped checks that bytes go from one link to another through a pipe, in order and completely.
func piped(t *testing.T, setup Setup) {
	a, via := connect(t, setup)
	out, b := connect(t, setup)
	p, err := splice.NewPipe(64 << 10)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	want := random(1<<20, 6)
	done := make(chan error, 2)
	got := make([]byte, len(want))
	go func() { done <- WriteFull(a, want) }()
	go func() { done <- ReadFull(b, got) }()
	for left := len(want); left > 0 || p.Len() > 0; {
		if left > 0 {
			n, err := via.(splice.Link).TryFill(p, left)
			if err != nil && !errors.Is(err, transport.ErrAgain) {
				t.Fatal(err)
			}
			left -= n
		}
		if p.Len() == 0 {
			if !via.Arm() && !ready(via.FD(), unix.POLLIN, Patience) {
				t.Fatal(errPatience)
			}
			continue
		}
		n, err := out.(splice.Link).TryDrain(p)
		if err == transport.ErrAgain && n == 0 {
			if !ready(out.WriteFD(), unix.POLLOUT, Patience) {
				t.Fatal(errPatience)
			}
		} else if err != nil {
			t.Fatal(err)
		}
	}
	for range 2 {
		if err := <-done; err != nil {
			t.Fatal(err)
		}
	}
	if !bytes.Equal(got, want) {
		t.Error("other bytes arrived")
	}
	via.Close()
	if n, err := via.(splice.Link).TryFill(p, 1); n != 0 || err != transport.ErrClosed {
		t.Errorf("filled from a closed link: %d, %v", n, err)
	}
	if err := p.Write([]byte{1}); err != nil {
		t.Fatal(err)
	}
	out.Close()
	if n, err := out.(splice.Link).TryDrain(p); n != 0 || err != transport.ErrClosed {
		t.Errorf("drained into a closed link: %d, %v", n, err)
	}
}
