package relay

import (
	"testing"
	"time"

	"github.com/leidenzipper/zipper/forwarder/budget"
	"github.com/leidenzipper/zipper/internal/transport"
	"github.com/leidenzipper/zipper/internal/wire"
)

// TestPause checks that a connection that has used up its job's budget is not read but still gets
// signs of life, and that it is read again, without loss, once its destination has read.
func TestPause(t *testing.T) {
	f := newFixture(t)
	job := budget.New(32 << 10)
	f.runWith(job)
	h := wire.Header{Type: wire.TypeEager, Src: 0, Dst: 1, Length: wire.EnvelopeLen + 100}
	frame := append(h.Append(nil), make([]byte, h.Length)...)
	c := f.ctl[0].conn
	var left []byte
	sent, silent := 0, 0
	for range 10_000 {
		if len(left) == 0 {
			left = frame
			sent++
		}
		n, err := f.ranks[0].TryWrite(left)
		if err != nil && err != transport.ErrAgain {
			t.Fatal(err)
		}
		left = left[n:]
		f.settle()
		if n == 0 {
			if silent++; silent == 3 { // the connection accepts no more
				break
			}
		}
	}
	if silent < 3 || !c.memory.paused.Load() {
		t.Fatalf("%d frames were taken, %d bytes are booked", sent, job.Used())
	}
	if used := job.Used(); used > job.Limit()/2+6<<10 || used < job.Limit()/3 {
		t.Errorf("%d of %d bytes are charged to the only sender", used, job.Limit())
	}
	for range 50 { // shorter than the time after which its destination counts as dead
		f.now = f.now.Add(time.Second)
		f.settle()
	}
	if n := f.reads(t, 0); n < 40*wire.HeaderLen {
		t.Errorf("%d bytes of keep-alive went to the peer that is not read", n)
	}
	if c.pinged {
		t.Error("one that is not read is taken for silent")
	}
	f.ctl[0].expect(t)
	got := 0
	for len(left) > 0 || got < sent*len(frame) {
		if n, err := f.ranks[0].TryWrite(left); err == nil {
			left = left[n:]
		}
		f.settle()
		n := f.reads(t, 1)
		f.now = f.now.Add(time.Second)
		f.settle()
		if got += n; n == 0 && len(left) == 0 && got < sent*len(frame) {
			t.Fatalf("%d of %d bytes arrive", got, sent*len(frame))
		}
	}
	if c.memory.paused.Load() || job.Used() != 0 || c.memory.Held() != 0 {
		t.Errorf("%d bytes are booked when all is out", job.Used())
	}
}

// TestIncompleteFrameTakesLittleMemory checks that an incomplete frame of a connection without a
// route takes no more memory than the bytes that have arrived.
func TestIncompleteFrameTakesLittleMemory(t *testing.T) {
	f := newFixture(t)
	c := f.ctl[0].conn
	h := wire.Header{Type: wire.TypeJoin, Src: wire.Nobody, Dst: wire.Nobody, Length: 60_000}
	h.BodySum = wire.Sum(make([]byte, h.Length))
	frame := append(h.Append(nil), make([]byte, h.Length)...)
	if _, err := f.ranks[0].TryWrite(frame[:wire.HeaderLen+4]); err != nil {
		t.Fatal(err)
	}
	f.settle()
	if held := c.memory.Held(); held == 0 || held > 4<<10 {
		t.Errorf("the head of a frame takes %d", held)
	}
	for sent := wire.HeaderLen + 4; sent < len(frame); {
		n, err := f.ranks[0].TryWrite(frame[sent:min(sent+500, len(frame))])
		if err != nil {
			t.Fatal(err)
		}
		sent += n
		f.settle()
		if held := int(c.memory.Held()); held > max(4<<10, 4*sent+1<<10) {
			t.Fatalf("%d bytes of a frame take %d", sent, held)
		}
	}
	f.ctl[0].expect(t, "Join 60000")
	if c.memory.Held() != 0 {
		t.Errorf("%d bytes are booked when it is whole", c.memory.Held())
	}
}

// TestStalledFrameIsDetected checks that a frame that stays incomplete because bytes are missing is
// detected although the peer still answers pings: the incomplete frame swallows the answers.
func TestStalledFrameIsDetected(t *testing.T) {
	f := newFixture(t)
	f.run()
	h := wire.Header{Type: wire.TypeEager, Src: 0, Dst: 1, Length: wire.EnvelopeLen + 900}
	part := append(h.Append(nil), make([]byte, 100)...)
	pong := wire.AppendFrame(nil, wire.Control(wire.TypePong), nil)
	seconds := 0
	for b := part; len(f.ctl[0].notes) == 0 && seconds < 20; b = pong {
		if n, err := f.ranks[0].TryWrite(b); n != len(b) || err != nil {
			t.Fatal(n, err)
		}
		f.settle()
		f.now = f.now.Add(2 * time.Second)
		f.settle()
		seconds += 2
	}
	f.ctl[0].expect(t, "bad: a frame is incomplete: some of its bytes are missing")
	if seconds > 10 {
		t.Errorf("it was noticed after %d s", seconds)
	}
}
