package rma

import (
	"bytes"
	"errors"
	"fmt"
	"testing"
)

// TestLayouts checks transfers of many messages between layouts with gaps.
func TestLayouts(t *testing.T) {
	j := newJob(t, 2, 1<<20, 3)
	j.ok(j.nodes[0].Fence(true, "fence"))
	data := make([]byte, 400000)
	for i := range data {
		data[i] = byte(i * 7 >> 3)
	}
	there := Layout{[]Span{{8, 8}, {24, 16}}, 40, 400000 / 24}
	n := there.Size()
	j.operate(0, Operation{Verb: Put, Target: 1, Disp: 2, Data: flat(data[:n]), There: there}, "put")
	back := make([]byte, n)
	j.operate(0, Operation{Verb: Get, Target: 1, Disp: 2, There: there, Result: View{Bytes(back),
		Layout{[]Span{{0, 3}, {3, 5}}, 8, n / 8}}}, "get")
	j.run()
	if !j.done["put"] || !j.done["get"] || !bytes.Equal(back, data[:n]) {
		t.Fatal("the data read differ from the data written")
	}
	for i := range there.Count {
		at := 16 + i*40
		if !bytes.Equal(j.mem[1][at:at+8], make([]byte, 8)) || !bytes.Equal(j.mem[1][at+8:at+16], data[i*24:i*24+8]) {
			t.Fatalf("element %d", i)
		}
	}
}

func TestCursor(t *testing.T) {
	c := cursor{Layout: Layout{[]Span{{0, 8}}, 24, 5}}
	got, n := c.take(20, 0)
	if want := []Run{{0, 8, 2, 24}, {48, 4, 1, 0}}; n != 20 || fmt.Sprint(got) != fmt.Sprint(want) {
		t.Fatalf("%v, %d", got, n)
	}
	got, n = c.take(100, 2)
	if want := []Run{{52, 4, 1, 0}, {72, 8, 2, 24}}; n != 20 || fmt.Sprint(got) != fmt.Sprint(want) {
		t.Fatalf("%v, %d", got, n)
	}
	if got, n = c.take(100, 0); n != 0 {
		t.Fatalf("%v, %d", got, n)
	}
	c = cursor{Layout: Layout{[]Span{{0, 8}, {16, 8}, {40, 8}}, 48, 1}}
	if got, n = c.take(100, 1); n != 16 || len(got) != 1 {
		t.Fatalf("%v, %d", got, n)
	}
}

func TestDynamic(t *testing.T) {
	j := newJob(t, 2, 0, 1)
	mem := make([]byte, 32)
	j.nodes[1] = NewNode(Config{Rank: 1, Size: 2, Dynamic: true, Compute: compute})
	j.ok(j.nodes[1].Attach(1<<47, mem, false))
	if err := j.nodes[1].Attach(1<<47+8, mem[:8], false); err == nil {
		t.Error("attached twice")
	}
	j.ok(j.nodes[0].Lock(1, 0, "lock"))
	j.operate(0, Operation{Verb: Put, Target: 1, Disp: 1<<47 + 8, Data: flat(u64(5)),
		There: flat(make([]byte, 8)).Layout}, nil)
	j.run()
	if le.Uint64(mem[8:]) != 5 {
		t.Error("nothing came")
	}
	j.ok(j.nodes[1].Detach(1 << 47))
	if _, _, err := j.nodes[1].memory(1<<47, 0, 8); !errors.Is(err, ErrRange) {
		t.Errorf("detached: %v", err)
	}
}

// TestNeighbours checks that an origin can use adjacent regions without a gap as one.
func TestNeighbours(t *testing.T) {
	const first = uint64(1) << 47
	mem := make([]byte, 64)
	n := NewNode(Config{Rank: 1, Size: 2, Dynamic: true, Compute: compute,
		Across: func(addr uint64, n int) []byte { return mem[addr-first:][:n] }})
	attach := func(at, size uint64) error { return n.Attach(first+at, mem[at:][:size:size], false) }
	for _, r := range [][2]uint64{{40, 8}, {0, 16}, {16, 0}, {16, 8}, {24, 8}} { // 32 to 40 is a gap
		if err := attach(r[0], r[1]); err != nil {
			t.Fatalf("attach %v: %v", r, err)
		}
	}
	for _, r := range [][2]uint64{{0, 1}, {31, 2}, {8, 40}, {23, 1}, {20, 4}, {47, 4}} {
		if attach(r[0], r[1]) == nil {
			t.Errorf("%d bytes at %d are attached twice", r[1], r[0])
		}
	}
	check := func(at, size uint64, want bool) {
		t.Helper()
		b, _, err := n.memory(int64(first), int64(at), uint32(size))
		if (err == nil) != want {
			t.Errorf("%d bytes at %d: %v", size, at, err)
		} else if want && (len(b) != int(size) || &b[0] != &mem[at]) {
			t.Errorf("%d bytes at %d are elsewhere", size, at)
		}
	}
	check(0, 32, true)
	check(12, 8, true)
	check(15, 17, true)
	check(24, 8, true)
	check(40, 8, true)
	check(0, 33, false)
	check(24, 20, false)
	check(36, 8, false)
	check(40, 9, false)
	check(64, 1, false)
	if err := n.Detach(first + 24); err != nil {
		t.Fatal(err)
	}
	check(0, 24, true)
	check(0, 25, false)
}
