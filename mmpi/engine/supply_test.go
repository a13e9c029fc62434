package engine

import (
	"bytes"
	"sync/atomic"
	"testing"
)

// TestMissingBytesAreSentLater sends a message whose bytes come into memory piece by piece: the
// receiver gets each piece before the next one is there, and nothing that is missing. A short
// message is not sent before it is whole either.
func TestMissingBytesAreSentLater(t *testing.T) {
	for _, size := range []int{100, 3 << 20} {
		f := newFabric(t, []int{1, 1}, Limits{})
		c := f.world(7)
		want, sent, got := pattern(1, size), make([]byte, size), make([]byte, size)
		var out, in Cell
		out.Missing = int64(size)
		if err := f.engines[1].Irecv(c[1], 0, got, 0, 5, &in); err != nil {
			t.Fatal(err)
		}
		if err := f.engines[0].Isend(c[0], 0, sent, 1, 5, false, &out); err != nil {
			t.Fatal(err)
		}
		handle := out.Request()
		for there := 0; there < size; {
			f.settle()
			if in.Done() || out.Done() {
				t.Fatalf("of %d bytes %d are there, but the message is complete", size, there)
			}
			if arrived := int(atomic.LoadInt64(&in.Arrived)); arrived != there {
				t.Fatalf("of %d bytes %d are there, but %d have arrived", size, there, arrived)
			}
			next := min(there+size/3+1, size)
			copy(sent[there:next], want[there:next])
			there = next
			atomic.StoreInt64(&out.Missing, int64(size-there))
			Supply(f.engines[0], handle)
		}
		f.settle()
		if !in.Done() || !out.Done() || !bytes.Equal(got, want) {
			t.Errorf("%d bytes: received %v, sent %v, equal %v", size, in.Done(), out.Done(), bytes.Equal(got, want))
		}
		Supply(f.engines[0], handle) // a send that has ended
	}
}

// TestMissingBytesOfTruncatedMessage sends such a message into a shorter buffer.
func TestMissingBytesOfTruncatedMessage(t *testing.T) {
	const size, room = 1 << 20, 1 << 19
	f := newFabric(t, []int{1, 1}, Limits{})
	c := f.world(7)
	var out, in Cell
	out.Missing = size - room/2
	if err := f.engines[1].Irecv(c[1], 0, make([]byte, room), 0, 5, &in); err != nil {
		t.Fatal(err)
	}
	if err := f.engines[0].Isend(c[0], 0, make([]byte, size), 1, 5, false, &out); err != nil {
		t.Fatal(err)
	}
	handle := out.Request()
	f.settle()
	if arrived := atomic.LoadInt64(&in.Arrived); arrived != room/2 {
		t.Fatalf("%d bytes have arrived, want %d", arrived, room/2)
	}
	atomic.StoreInt64(&out.Missing, size-room)
	Supply(f.engines[0], handle)
	f.settle()
	if !in.Done() || in.Err() == nil || !out.Done() {
		t.Errorf("received %v (%v), sent %v", in.Done(), in.Err(), out.Done())
	}
}
