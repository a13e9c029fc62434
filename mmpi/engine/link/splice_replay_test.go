package link

import (
	"bytes"
	"context"
	"testing"
	"time"

	"github.com/leidenzipper/zipper/internal/transport"
	"github.com/leidenzipper/zipper/internal/transport/splice"
	"github.com/leidenzipper/zipper/internal/wire"
)

// redialledPair returns two Sets that are joined by one socket, and the function that replaces the
// socket by a new one.
func redialledPair(t *testing.T) (u [2]*testProcess, replace func()) {
	t.Helper()
	a, b := tcpLinks(t)
	var next [2]chan transport.Link
	for i, l := range []transport.Link{a, b} {
		next[i] = make(chan transport.Link, 1)
		u[i] = newProcess(t, i, []uint32{1, 1}, func(c *Config) {
			c.Links, c.Level = []transport.Link{l}, wire.LevelChecked
			c.Redial = func(ctx context.Context, _ int, _ Attempt) (transport.Link, error) {
				select {
				case l := <-next[i]:
					return l, nil
				case <-ctx.Done():
					return nil, ctx.Err()
				}
			}
		})
		u[i].locked(u[i].set.Start)
	}
	return u, func() {
		a, b := tcpLinks(t)
		next[0] <- a
		next[1] <- b
		for _, x := range u {
			x.locked(func() { x.set.down(x.set.rails[0], "cut") })
		}
		for up := 0; up < len(u); time.Sleep(time.Millisecond) {
			up = 0
			for _, x := range u {
				x.locked(func() {
					if x.set.rails[0].Linked() {
						up++
					}
				})
			}
		}
	}
}

// TestReplayOfMessageThatHasArrived checks that the receiver takes no notice of the checksum of a
// segment that it discards. Such a segment is sent again after a lost link, from the program's
// memory, which the program changes as soon as it has learnt that the message has arrived.
func TestReplayOfMessageThatHasArrived(t *testing.T) {
	u, replace := redialledPair(t)
	fast(u[0].set.Peer(1))
	const size = 4 << 20
	sent, got := pattern(1, size), make([]byte, size)
	from, to := u[0].set.rails[0], u[1].set.rails[0]
	var src *Source
	u[0].locked(func() { src = u[0].send(u[1], 1, sent, got) })
	written := 0
	write := func() { // The sender reads nothing, so it does not learn what has arrived.
		u[0].locked(func() {
			n, err := from.write()
			if err != nil {
				t.Fatal(err)
			}
			written += n
		})
	}
	read := func() {
		u[1].locked(func() { u[1].set.Step() })
		if u[1].failed != "" || !to.Linked() {
			t.Fatalf("the receiver has lost its link: %v, %s", to.State(), u[1].failed)
		}
	}
	for !u[1].filled[1] {
		write()
		read()
	}
	replace()
	written = 0
	for spliced := false; !spliced; {
		write()
		u[0].locked(func() { spliced = from.blocked && from.seg.spliced })
		if !spliced && !from.blocked {
			t.Fatal("no segment is spliced when it is sent again")
		}
		if !spliced {
			read()
		}
	}
	u[0].locked(func() {
		u[0].set.Abandon(src)
		delete(u[0].sources, 1)
	})
	clear(sent)
	for written > 0 && to.in.read < uint64(written) || from.pending() {
		write()
		read()
	}
	if !bytes.Equal(got, pattern(1, size)) {
		t.Error("the message has changed")
	}
}

// TestDetachedSegmentIsNotSpliced checks that the copy of a segment that is separated from its
// Source is not put into the pipe: Go may use the memory of the copy again once it is written.
func TestDetachedSegmentIsNotSpliced(t *testing.T) {
	u := tcpPair(t)
	r, to := u[0].set.rails[0], u[1].set.rails[0]
	fast(u[0].set.Peer(1))
	var err error
	if r.pipe, err = splice.NewPipe(64 << 10); err != nil { // It holds only a part of a segment.
		t.Fatal(err)
	}
	const size = 16 << 20
	sent, got := pattern(1, size), make([]byte, size)
	src := u[0].send(u[1], 1, sent, got)
	for !r.blocked || !r.seg.spliced || len(r.seg.data) <= r.pipe.Len() {
		u[0].set.Step() // The receiver reads nothing, so the link takes no more.
	}
	end := src.started
	u[0].set.Abandon(src)
	for rest := r.seg.data; r.seg.active && r.seg.src == nil; {
		u[1].set.Step()
		if _, err := r.write(); err != nil {
			t.Fatal(err)
		}
		left := 0
		if r.seg.src == nil {
			left = len(r.seg.data)
		}
		clear(rest[:len(rest)-left]) // These bytes are in the socket.
	}
	for u[0].failed+u[1].failed == "" && u[1].sinks[1].arrived < end {
		u[1].set.Step()
	}
	if u[0].failed+u[1].failed != "" || !to.Linked() {
		t.Fatal(u[0].failed, u[1].failed)
	}
	if !bytes.Equal(got[:end], pattern(1, size)[:end]) {
		t.Error("the segment has changed")
	}
}
