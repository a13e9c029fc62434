package engine

import (
	"bytes"
	"encoding/binary"
	"strings"
	"testing"
	"time"

	"github.com/leidenzipper/zipper/internal/wire"
)

// raw returns a frame that a hostile peer (virtual rank 1) might send to rank 0.
func raw(t wire.Type, seq, ack uint64, body []byte, payload int) []byte {
	h := wire.Header{Type: t, Epoch: 1, Length: uint32(len(body) + payload), Src: 1, Dst: 0, Seq: seq, Ack: ack}
	return append(append(h.Append(nil), body...), make([]byte, payload)...)
}

func envelope(context uint64, tag int32, kind uint32, size, handle uint64) []byte {
	e := wire.Envelope{Context: context, Tag: tag, Kind: kind, Size: size, Handle: handle}
	return e.Append(nil)
}

// TestHostileFramesEndTheLink checks that a frame that no honest peer sends ends the link with a
// reason, and has no other effect.
func TestHostileFramesEndTheLink(t *testing.T) {
	ok := func(n uint64) []byte { return envelope(1, 1, 0, n, 1) }
	cts := func(s, r, n uint64) []byte { c := wire.CTS{Sender: s, Receiver: r, Bytes: n}; return c.Append(nil) }
	data := func(r, off uint64) []byte { d := wire.Data{Receiver: r, Offset: off}; return d.Append(nil) }
	handle := func(h uint64) []byte { return binary.LittleEndian.AppendUint64(nil, h) }
	// Outstanding at rank 0: a send of 100 bytes (1<<32|1), announced; a synchronous eager one
	// (1<<32|2); a receive of 100 bytes for tag 9.
	const long, sync = 1<<32 | 1, 1<<32 | 2
	for _, c := range []struct {
		name   string
		frames [][]byte
		want   string
	}{
		{"unknown type", [][]byte{raw(77, 0, 0, nil, 0)}, "unknown frame type"},
		{"too long", [][]byte{raw(wire.TypeEager, 1, 0, nil, wire.MaxLength+1)[:64]}, "frame"},
		{"wrong body size", [][]byte{raw(wire.TypeCTS, 1, 0, make([]byte, 5), 0)}, "CTS"},
		{"unknown source", [][]byte{wire.AppendFrame(nil, wire.Header{Type: wire.TypeAck, Src: 0x09090909}, nil)}, "no other rank"},
		{"sequence 0", [][]byte{raw(wire.TypeEager, 0, 0, ok(0), 0)}, "sequence number"},
		{"sequence far ahead", [][]byte{raw(wire.TypeEager, 1<<40, 0, ok(0), 0)}, "sequence number"},
		{"acknowledgement of an unsent frame", [][]byte{raw(wire.TypeAck, 0, 99, nil, 0)}, "acknowledged"},
		{"more than credit", [][]byte{raw(wire.TypeEager, 1, 0, ok(900), 900), raw(wire.TypeEager, 2, 0, ok(900), 900)}, "credit"},
		{"size is not the payload", [][]byte{raw(wire.TypeEager, 1, 0, ok(100), 10)}, "100 bytes with 10"},
		{"negative tag", [][]byte{raw(wire.TypeEager, 1, 0, envelope(1, -1, 0, 0, 0), 0)}, "envelope"},
		{"unknown kind", [][]byte{raw(wire.TypeRTS, 1, 0, envelope(1, 1, 7, 0, 0), 0)}, "envelope"},
		{"size of 2^63", [][]byte{raw(wire.TypeRTS, 1, 0, ok(1<<63), 0)}, "envelope"},
		{"CTS without a send", [][]byte{raw(wire.TypeCTS, 1, 0, cts(1<<32|77, 1, 10), 0)}, "no send"},
		{"CTS of an old handle", [][]byte{raw(wire.TypeCTS, 1, 0, cts(2<<32|1, 1, 10), 0)}, "no send"},
		{"CTS for more bytes than the message has", [][]byte{raw(wire.TypeCTS, 1, 0, cts(long, 1, 101), 0)}, "101 of 100"},
		{"CTS for an eager send", [][]byte{raw(wire.TypeCTS, 1, 0, cts(sync, 1, 1), 0)}, "in state waiting"},
		{"CTS twice", [][]byte{raw(wire.TypeCTS, 1, 0, cts(long, 1, 100), 0), raw(wire.TypeCTS, 2, 0, cts(long, 1, 100), 0)}, "in state"},
		{"Matched for a long send", [][]byte{raw(wire.TypeMatched, 1, 0, handle(long), 0)}, "in state announced"},
		{"cancel reply without a request", [][]byte{raw(wire.TypeCancelReply, 1, 0, append(handle(long), handle(1)...), 0)}, "in state announced"},
		{"segment without a receive", [][]byte{raw(wire.TypeData, 0, 0, data(5, 0), 10)}, "no receive"},
		{"segment for a send", [][]byte{raw(wire.TypeData, 0, 0, data(long, 0), 10)}, "no receive"},
		{"segment at a wrong place", [][]byte{raw(wire.TypeRTS, 1, 0, envelope(1, 9, 0, 100, 5), 0), raw(wire.TypeData, 0, 0, data(1<<32|3, 50), 10)}, "at 50"},
		{"segment too long", [][]byte{raw(wire.TypeRTS, 1, 0, envelope(1, 9, 0, 100, 5), 0), raw(wire.TypeData, 0, 0, data(1<<32|3, 0), 101)}, "101 bytes at 0"},
		{"empty segment", [][]byte{raw(wire.TypeRTS, 1, 0, envelope(1, 9, 0, 100, 5), 0), raw(wire.TypeData, 0, 0, data(1<<32|3, 0), 0)}, "Data"},
		{"too many orphans", [][]byte{raw(wire.TypeRTS, 1, 0, envelope(5, 1, 0, 1, 1), 0), raw(wire.TypeRTS, 2, 0, envelope(5, 1, 0, 1, 2), 0), raw(wire.TypeRTS, 3, 0, envelope(5, 1, 0, 1, 3), 0)}, "unknown here"},
		{"second Layout", [][]byte{wire.AppendFrame(nil, wire.Header{Type: wire.TypeLayout, Src: wire.Nobody, Dst: wire.Nobody}, &wire.Layout{Clusters: []wire.Cluster{{Name: "a", Size: 1}}, Libraries: []string{"x"}})}, "unexpected Layout"},
		{"ByeAck without Bye", [][]byte{wire.AppendFrame(nil, wire.Header{Type: wire.TypeByeAck, Src: wire.Nobody, Dst: wire.Nobody}, nil)}, "a goodbye that was not sent"},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := newFabric(t, []int{1, 1}, Limits{Eager: 64, EagerWindow: 1000, Orphans: 2})
			comms := f.world(1)
			e := f.engines[0]
			cells := make([]Cell, 3)
			for i, err := range []error{
				e.Isend(comms[0], KindP2P, make([]byte, 100), 1, 1, false, &cells[0]),
				e.Isend(comms[0], KindP2P, make([]byte, 10), 1, 1, true, &cells[1]),
				e.Irecv(comms[0], KindP2P, make([]byte, 100), 1, 9, &cells[2]),
			} {
				if err != nil {
					t.Fatal(i, err)
				}
			}
			for _, b := range c.frames {
				f.down[0] = append(f.down[0], b...)
			}
			for range 3 {
				e.Progress(0)
			}
			n := f.natives[0]
			if !strings.Contains(n.failed, c.want) || !strings.Contains(n.failed, "link rank 0 - forwarder mem") ||
				n.code == 0 {
				t.Fatalf("failed with %d, %q; want a link error with %q", n.code, n.failed, c.want)
			}
			for i := range cells {
				if !cells[i].Done() || Code(cells[i].Error) != ErrLink {
					t.Errorf("operation %d is not over with ErrLink", i)
				}
			}
			if n.busy {
				t.Error("busy after the end")
			}
			if err := e.Isend(comms[0], KindP2P, nil, 1, 1, false, new(Cell)); CodeOf(err) != ErrLink {
				t.Errorf("send after the end: %v", err)
			}
		})
	}
}

// TestReorderedFramesArePutInOrder checks that frames that arrive out of order, and twice, as they
// may over several rails, are put in order.
func TestReorderedFramesArePutInOrder(t *testing.T) {
	f := newFabric(t, []int{1, 1}, Limits{})
	c := f.world(1)
	var kept [][]byte
	f.edit = func(h *wire.Header, frame []byte) [][]byte {
		if h.Src != 1 || !h.Type.Sequenced() {
			return [][]byte{frame}
		}
		if kept = append(kept, append([]byte(nil), frame...)); len(kept) < 4 {
			return nil
		}
		out := [][]byte{kept[2], kept[0], kept[2], kept[3], kept[1], kept[0]}
		kept = nil
		return out
	}
	for i := range 4 {
		if err := f.engines[1].Isend(c[1], KindP2P, []byte{byte(i), 1, 2, 3}[:i+1], 0, i, false,
			new(Cell)); err != nil {
			t.Fatal(err)
		}
	}
	f.settle()
	for i := range 4 {
		var cell Cell
		b := make([]byte, 10)
		if err := f.engines[0].Irecv(c[0], KindP2P, b, 1, AnyTag, &cell); err != nil {
			t.Fatal(err)
		}
		if !cell.Done() || cell.Tag != int32(i) || cell.Bytes != int64(i+1) || b[0] != byte(i) {
			t.Fatalf("message %d: %+v %v", i, cell, b)
		}
	}
}

// TestLostLinkEndsTheJob checks that a link that ends without a Bye, or does not answer, ends the
// job with an error that names the link.
func TestLostLinkEndsTheJob(t *testing.T) {
	f := newFabric(t, []int{1, 1}, Limits{Ping: time.Second, Silence: time.Second})
	f.world(1)
	f.eof[0] = true
	f.engines[0].Progress(0)
	if n := f.natives[0]; !strings.Contains(n.failed, "link rank 0 - forwarder mem lost: the forwarder closed it") {
		t.Errorf("end of file: %q", n.failed)
	}
	e := f.engines[1]
	tick := func(at time.Duration) {
		e.lock()
		e.links.Step()
		e.links.Tick(at)
		e.unlock()
	}
	tick(500 * time.Millisecond)
	tick(1500 * time.Millisecond)                         // pings
	if len(f.up[1]) != 3*wire.HeaderLen+2*wire.CountLen { // with a Count as the first frame, and beside the ping
		t.Fatalf("%d bytes sent, want a ping", len(f.up[1]))
	}
	f.relay(1, 0)
	tick(2 * time.Second) // receives the pong
	tick(4 * time.Second) // pings again, and gets no answer
	tick(4500 * time.Millisecond)
	if n := f.natives[1]; n.failed != "" {
		t.Fatalf("given up too early: %q", n.failed)
	}
	tick(5500 * time.Millisecond)
	if n := f.natives[1]; !strings.Contains(n.failed, "no answer") {
		t.Fatalf("silence: %q", n.failed)
	}
}

// TestAbortReachesAllRanks checks that MPI_Abort reaches all ranks with its exit status.
func TestAbortReachesAllRanks(t *testing.T) {
	f := newFabric(t, []int{1, 1, 1}, Limits{})
	f.engines[2].Abort(42, "MPI_Abort")
	f.settle()
	for _, r := range []int{0, 1} {
		if n := f.natives[r]; n.code != 42 || !strings.Contains(n.failed, "exit status 42: MPI_Abort") {
			t.Errorf("rank %d: %d, %q", r, n.code, n.failed)
		}
	}
}

// TestSlowDestinationDelaysNoOther checks that messages to other ranks arrive while one destination
// does not read.
func TestSlowDestinationDelaysNoOther(t *testing.T) {
	f := newFabric(t, []int{1, 2}, Limits{Eager: 1000, EagerWindow: 4000, DataWindow: 4000, Segment: 1000})
	c := f.world(1)
	e := f.engines[0]
	slow, fast := make([]Cell, 20), make([]Cell, 20)
	for i := range slow {
		if err := e.Isend(c[0], KindP2P, make([]byte, 900), 1, 1, false, &slow[i]); err != nil {
			t.Fatal(err)
		}
	}
	for i := range fast {
		if err := f.engines[2].Irecv(c[2], KindP2P, make([]byte, 9000), 0, 1, &fast[i]); err != nil {
			t.Fatal(err)
		}
		if err := e.Isend(c[0], KindP2P, make([]byte, 9000), 2, 1, false, new(Cell)); err != nil {
			t.Fatal(err)
		}
	}
	for range 200 {
		e.Progress(0)
		f.relay(0, 0)
		f.engines[2].Progress(0)
		f.relay(2, 0)
	}
	for i := range fast {
		if !fast[i].Done() {
			t.Fatalf("message %d to the fast one is not there", i)
		}
	}
	if slow[19].Done() {
		t.Error("eager messages without end to a process that takes none")
	}
}

// FuzzFrames checks that the engine does not panic with any bytes from the link, and that all
// operations end once it has failed.
func FuzzFrames(f *testing.F) {
	cts := wire.CTS{Sender: 1<<32 | 1, Receiver: 1, Bytes: 100}
	data := wire.Data{Receiver: 1<<32 | 3}
	f.Add(raw(wire.TypeEager, 1, 0, envelope(1, 9, 0, 10, 0), 10))
	f.Add(append(raw(wire.TypeRTS, 1, 0, envelope(1, 9, 0, 100, 5), 0), raw(wire.TypeData, 0, 0, data.Append(nil),
		100)...))
	f.Add(raw(wire.TypeCTS, 1, 0, cts.Append(nil), 0))
	f.Add(append(raw(wire.TypeEager, 2, 0, envelope(1, 9, 0, 10, 0), 10),
		raw(wire.TypeEager, 1, 0, envelope(1, 9, 0, 0, 0), 0)...))
	f.Add(raw(wire.TypeCancel, 1, 0, binary.LittleEndian.AppendUint64(nil, 5), 0))
	f.Fuzz(func(t *testing.T, b []byte) {
		x := newFabric(t, []int{1, 1}, Limits{Eager: 64, EagerWindow: 1000, DataWindow: 1000, Segment: 100, Orphans: 4})
		c := x.world(1)
		e := x.engines[0]
		cells := make([]Cell, 3)
		buf := make([]byte, 104)
		_ = e.Isend(c[0], KindP2P, make([]byte, 100), 1, 1, false, &cells[0])
		_ = e.Isend(c[0], KindP2P, make([]byte, 10), 1, 1, true, &cells[1])
		_ = e.Irecv(c[0], KindP2P, buf[:100], 1, 9, &cells[2])
		x.down[0] = bytes.Clone(b)
		wire.FixSums(x.down[0])
		for range 10 {
			e.Progress(0)
			if err := e.check(); err != nil {
				t.Fatal(err)
			}
		}
		if string(buf[100:]) != "\x00\x00\x00\x00" {
			t.Fatal("bytes behind the receive buffer were written")
		}
		if err := e.Err(); err != nil {
			for i := range cells {
				if !cells[i].Done() {
					t.Fatalf("operation %d hangs after %v", i, err)
				}
			}
		}
	})
}
