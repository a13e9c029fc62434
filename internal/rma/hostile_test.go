package rma

import (
	"bytes"
	"strings"
	"testing"
)

// TestWaitingIsBounded checks that an origin which waits for the lock may have as many bytes in
// flight as an honest one has, in pieces of any size, but no more.
func TestWaitingIsBounded(t *testing.T) {
	target := NewNode(Config{Rank: 1, Size: 3, Unit: 1, Memory: make([]byte, 64), Compute: compute})
	n := NewNode(Config{Rank: 0, Size: 3, Unit: 1, Compute: compute})
	lockIt := message{verb: lock, fn: 1}
	for from := range 2 {
		if err := target.Receive(2*from, lockIt.appendHead(nil)); err != nil {
			t.Fatal(err)
		}
	}
	if err := n.LockAll(false, nil); err != nil {
		t.Fatal(err)
	}
	put := Operation{Verb: Put, Target: 1, Data: flat(make([]byte, 1)), There: flat(make([]byte, 1)).Layout}
	var last []byte
	deliver := func() (err error) {
		for o, ok := n.Next(); ok; o, ok = n.Next() {
			if o.To == 1 && err == nil {
				last = bytes.Clone(o.Message)
				err = target.Receive(2, o.Message)
			}
			n.Reuse(o.Message)
		}
		return err
	}
	for !n.Full(1) {
		x, err := n.Begin(put, nil)
		if err != nil {
			t.Fatal(err)
		}
		n.Issue(x)
		if err := deliver(); err != nil {
			t.Fatalf("an honest origin is refused: %v", err)
		}
	}
	var err error
	for i := 0; err == nil; i++ {
		if i > maxKept/len(last) {
			t.Fatal("no end")
		}
		err = target.Receive(2, last)
	}
	if !strings.Contains(err.Error(), "rank 2 waits for the lock") {
		t.Error(err)
	}
}

// messages returns a message of each kind in its real form: those from the origin to the target,
// and the target's answers.
func messages(f *testing.F) (there, back [][]byte) {
	config := Config{Size: 2, Unit: 8, Memory: make([]byte, 64), Compute: compute}
	origin := NewNode(config)
	config.Rank, config.Memory = 1, make([]byte, 64)
	target := NewNode(config)
	strided := Layout{Spans: []Span{{0, 4}}, Extent: 16, Count: 4}
	operations := []Operation{
		fetchAdd(1, 0, 1, make([]byte, 8)),
		{Verb: Put, Target: 1, Data: flat(u64(1)), There: flat(make([]byte, 8)).Layout},
		{Verb: Put, Target: 1, Data: flat(make([]byte, 16)), There: strided},
		{Verb: Get, Target: 1, There: strided, Result: flat(make([]byte, 16))},
		{Verb: Accumulate, Fn: sum, Target: 1, Disp: 2, Data: flat(u64(7)), There: flat(make([]byte, 8)).Layout},
		{Verb: Fetch, Fn: NoOp, Target: 1, There: flat(make([]byte, 8)).Layout, Result: flat(make([]byte, 8))},
		{Verb: Swap, Target: 1, Disp: 1, Data: flat(make([]byte, 16)), There: flat(make([]byte, 8)).Layout, Result: flat(make([]byte, 8))},
	}
	ok := func(err error) {
		if err != nil {
			f.Fatal(err)
		}
	}
	carry := func() {
		for o, more := origin.Next(); more; o, more = origin.Next() {
			if o.To != 1 {
				ok(origin.Receive(0, o.Message))
				continue
			}
			there = append(there, bytes.Clone(o.Message))
			ok(target.Receive(0, o.Message))
		}
		for o, more := target.Next(); more; o, more = target.Next() {
			back = append(back, bytes.Clone(o.Message))
			ok(origin.Receive(1, o.Message))
		}
	}
	ok(origin.Lock(1, Exclusive, nil))
	for _, op := range operations {
		x, err := origin.Begin(op, nil)
		ok(err)
		origin.Issue(x)
		carry()
	}
	ok(origin.Flush(1, nil))
	ok(origin.Unlock(1, nil))
	carry()
	ok(target.Post([]int{0}))
	carry()
	ok(origin.Start([]int{1}, nil))
	ok(origin.Complete(nil))
	carry()
	return there, back
}

// FuzzReceive checks that bytes from outside, in one or several messages, do no harm, both if the
// process is a target and if it waits for answers. Each message follows its length, two bytes.
func FuzzReceive(f *testing.F) {
	there, back := messages(f)
	for _, list := range [][][]byte{there, back} {
		var all []byte
		for _, m := range list {
			one := append(le.AppendUint16(nil, uint16(len(m))), m...)
			f.Add(one, false)
			f.Add(one, true)
			all = append(all, one...)
		}
		f.Add(all, false)
		f.Add(all, true)
	}
	f.Fuzz(func(t *testing.T, b []byte, locked bool) {
		memory := make([]byte, 64)
		n := NewNode(Config{Rank: 1, Size: 3, Unit: 8, Memory: memory[:48:48], Compute: compute})
		if locked { // rank 0 waits
			m := message{verb: lock, fn: 1}
			if err := n.Receive(2, m.appendHead(nil)); err != nil {
				t.Fatal(err)
			}
		}
		n.fenced = true
		result := make([]byte, 16)
		for _, op := range []Operation{fetchAdd(0, 0, 1, result[:8:8]), {Verb: Get, Target: 0,
			There: flat(result[:8]).Layout, Result: flat(result[:8:8])}} {
			x, err := n.Begin(op, nil)
			if err != nil {
				t.Fatal(err)
			}
			n.Issue(x)
		}
		for len(b) >= 2 {
			k := min(int(le.Uint16(b)), len(b)-2)
			one := b[2:][:k]
			b = b[2+k:]
			m, parsed := parse(one, nil)
			if parsed == nil && !bytes.Equal(append(m.appendHead(nil), m.data...), clean(one)) {
				t.Errorf("%x is read as %+v", one, m)
			}
			err := n.Receive(0, one)
			if err == nil && parsed != nil && len(n.stalled) == 0 {
				t.Errorf("%x is taken: %v", one, parsed)
			}
			for o, more := n.Next(); more; o, more = n.Next() {
				if len(o.Message) > MaxMessage {
					t.Errorf("an answer of %d bytes", len(o.Message))
				}
			}
			if err != nil {
				break
			}
		}
		if !bytes.Equal(memory[48:], make([]byte, 16)) || !bytes.Equal(result[8:], make([]byte, 8)) {
			t.Error("memory outside the window is changed")
		}
	})
}

// clean returns a message with zero in the unused byte.
func clean(b []byte) []byte {
	b = bytes.Clone(b)
	b[3] = 0
	return b
}
