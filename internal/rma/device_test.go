package rma

import (
	"bytes"
	"errors"
	"testing"
)

// card simulates the memory of a device: slices of opaque stand for its addresses, and only copy
// reads and writes its content.
type card struct {
	opaque, content []byte
	err             error // the result of copies, if not nil
}

func newCard(size int) *card { return &card{opaque: make([]byte, size), content: make([]byte, size)} }

// behind returns the content behind a slice of opaque, or the slice itself if it is other memory.
func (c *card) behind(b []byte) []byte {
	for i := range c.opaque {
		if len(b) > 0 && &b[0] == &c.opaque[i] {
			return c.content[i:][:len(b)]
		}
	}
	return b
}

func (c *card) copy(to, from []byte) error {
	if c.err != nil {
		return c.err
	}
	copy(c.behind(to), c.behind(from))
	return nil
}

// TestDevice checks that operations on memory of a device, at the target and for results, use
// copies only.
func TestDevice(t *testing.T) {
	j, c := newJob(t, 2, 0, 1), newCard(64)
	j.nodes[1] = NewNode(Config{Rank: 1, Size: 2, Unit: 8, Memory: c.opaque[:32:32], Device: true, Copy: c.copy,
		Compute: compute})
	result := func(at int) View {
		return View{Device{Bytes(c.opaque[at:]), c.copy}, Layout{[]Span{{0, 8}}, 0, 1}}
	}
	place := flat(make([]byte, 8)).Layout
	j.ok(j.nodes[0].Fence(true, nil))
	j.operate(0, Operation{Verb: Put, Target: 1, Disp: 1, Data: flat(u64(5)), There: place}, nil)
	j.operate(0, Operation{Verb: Accumulate, Fn: sum, Target: 1, Disp: 1, Data: flat(u64(2)), There: place}, nil)
	j.operate(0, Operation{Verb: Accumulate, Fn: Replace, Target: 1, Disp: 2, Data: flat(u64(9)), There: place}, nil)
	fetch := fetchAdd(1, 1, 1, nil)
	fetch.Result = result(32)
	j.operate(0, fetch, nil)
	j.operate(0, Operation{Verb: Get, Target: 1, Disp: 2, There: place, Result: result(40)}, nil)
	j.operate(0, Operation{Verb: Swap, Target: 1, Disp: 2, Data: flat(append(u64(3), u64(9)...)), There: place,
		Result: result(48)}, nil)
	j.run()
	for i, want := range []uint64{0, 8, 3, 0, 7, 9, 9, 0} {
		if got := c.content[8*i:][:8]; !bytes.Equal(got, u64(want)) {
			t.Errorf("word %d is %x, want %x", i, got, u64(want))
		}
	}
	if !bytes.Equal(c.opaque, make([]byte, 64)) {
		t.Error("memory of the device was written without a copy")
	}
}

// TestDeviceFails checks that a failure of a copy is the error of the message that needs it.
func TestDeviceFails(t *testing.T) {
	j, c := newJob(t, 2, 64, 1), newCard(64)
	c.err = errors.New("lost")
	target := NewNode(Config{Rank: 1, Size: 2, Unit: 8, Memory: c.opaque, Device: true, Copy: c.copy, Compute: compute})
	place := flat(make([]byte, 8)).Layout
	j.ok(j.nodes[0].Fence(true, nil))
	for _, op := range []Operation{{Verb: Put, Target: 1, Data: flat(u64(5)), There: place},
		{Verb: Accumulate, Fn: sum, Target: 1, Data: flat(u64(5)), There: place},
		{Verb: Get, Target: 1, There: place, Result: flat(make([]byte, 8))}} {
		x, err := j.nodes[0].Begin(op, nil)
		j.ok(err)
		j.nodes[0].Issue(x)
		if err := target.Receive(0, mustNext(t, j.nodes[0])); !errors.Is(err, c.err) {
			t.Errorf("operation %d: %v", op.Verb, err)
		}
	}
}
