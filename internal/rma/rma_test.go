package rma

import (
	"errors"
	"fmt"
	"slices"
	"testing"
)

// TestEpochs checks post, start, complete and wait in any order of arrival, twice.
func TestEpochs(t *testing.T) {
	for seed := range uint64(20) {
		j := newJob(t, 3, 24, seed)
		for round := range 2 {
			if seed%2 == 0 {
				j.ok(j.nodes[0].Post([]int{1, 2}))
			}
			for r := 1; r < 3; r++ {
				j.ok(j.nodes[r].Start([]int{0}, fmt.Sprint("start", r, round)))
			}
			if seed%2 == 1 {
				if j.run(); j.done[fmt.Sprint("start", 1, round)] {
					t.Fatal("started before the post")
				}
				j.ok(j.nodes[0].Post([]int{1, 2}))
			}
			if over, err := j.nodes[0].Test(); err != nil || over {
				t.Fatalf("test before complete: %v, %v", over, err)
			}
			j.run()
			for r := 1; r < 3; r++ {
				if !j.done[fmt.Sprint("start", r, round)] {
					t.Fatal("not started after the post")
				}
				j.operate(r, Operation{Verb: Put, Target: 0, Disp: int64(r), Data: flat(u64(uint64(r + round))),
					There: flat(make([]byte, 8)).Layout}, nil)
				j.ok(j.nodes[r].Complete(fmt.Sprint("complete", r, round)))
			}
			j.ok(j.nodes[0].Wait(fmt.Sprint("wait", round)))
			for !j.done[fmt.Sprint("wait", round)] {
				if !j.step() {
					t.Fatal("wait never ends")
				}
			}
			for r := 1; r < 3; r++ {
				if v := le.Uint64(j.mem[0][8*r:]); v != uint64(r+round) {
					t.Fatalf("memory %d, want %d", v, r+round)
				}
			}
			j.run()
		}
	}
}

func TestErrors(t *testing.T) {
	j := newJob(t, 2, 16, 1)
	n := j.nodes[0]
	put := Operation{Verb: Put, Target: 1, Data: flat(u64(1)), There: flat(make([]byte, 8)).Layout}
	if _, err := n.Begin(put, nil); !errors.Is(err, ErrSync) {
		t.Errorf("put without an epoch: %v", err)
	}
	for name, err := range map[string]error{"unlock": n.Unlock(1, nil), "flush": n.Flush(1, nil),
		"complete": n.Complete(nil), "wait": n.Wait(nil), "unlock_all": n.UnlockAll(nil)} {
		if !errors.Is(err, ErrSync) {
			t.Errorf("%s: %v", name, err)
		}
	}
	j.ok(n.Lock(1, Exclusive, nil))
	for name, err := range map[string]error{"lock": n.Lock(1, Exclusive, nil), "fence": n.Fence(true, nil),
		"start": n.Start(nil, nil), "lock_all": n.LockAll(false, nil), "free": n.Idle(nil)} {
		if !errors.Is(err, ErrSync) {
			t.Errorf("%s under a lock: %v", name, err)
		}
	}
	put.There.Count = 2
	if _, err := n.Begin(put, nil); !errors.Is(err, ErrRange) {
		t.Errorf("different sizes: %v", err)
	}
	put.There.Count, put.Disp = 1, 2
	x, err := n.Begin(put, nil)
	j.ok(err)
	n.Issue(x)
	for o, ok := n.Next(); ok; o, ok = n.Next() {
		err = j.nodes[1].Receive(0, o.Message)
	}
	if !errors.Is(err, ErrRange) {
		t.Errorf("put behind the end: %v", err)
	}
}

// TestResultsAcknowledge checks that results serve as acknowledgements: a flush or unlock after an
// operation with a result sends no message that a call waits for.
func TestResultsAcknowledge(t *testing.T) {
	j := newJob(t, 2, 8, 1)
	n := j.nodes[0]
	fetch := func() {
		op := Operation{Verb: Fetch, Fn: Replace, Target: 1, Data: flat(u64(5)), There: flat(make([]byte, 8)).Layout,
			Result: flat(make([]byte, 8))}
		x, err := n.Begin(op, nil)
		j.ok(err)
		n.Issue(x)
	}
	sent := func(want ...Verb) {
		t.Helper()
		for _, v := range want {
			if o, ok := n.Next(); !ok || Verb(o.Message[0]) != v {
				t.Fatalf("want verb %d: %v %v", v, o, ok)
			} else {
				j.ok(j.nodes[o.To].Receive(0, o.Message))
			}
		}
		if o, ok := n.Next(); ok {
			t.Fatalf("one more: %v", o)
		}
	}
	answers := func(want int, tokens ...any) {
		t.Helper()
		for ; want > 0; want-- {
			o, ok := j.nodes[1].Next()
			if !ok {
				t.Fatal("no answer")
			}
			if len(n.Done()) != 0 {
				t.Fatal("over too early")
			}
			j.ok(n.Receive(1, o.Message))
		}
		if got := n.Done(); !slices.Equal(got, tokens) {
			t.Fatalf("over: %v, want %v", got, tokens)
		}
	}
	j.ok(n.Lock(1, Exclusive, "lock"))
	sent(lock)
	answers(1, "lock")
	fetch()
	j.ok(n.Flush(1, "flush"))
	sent(Fetch)
	answers(1, "flush")
	j.ok(n.Unlock(1, "all is done"))
	sent(unlock)
	answers(0, "all is done")
	answers(1)

	j.ok(n.Lock(1, 0, "shared")) // the call does not wait for it
	fetch()
	j.ok(n.Unlock(1, "unlock"))
	sent(lock, Fetch, unlock)
	answers(0, "shared")
	j.ok(n.Receive(1, mustNext(t, j.nodes[1])))
	answers(1, "unlock")
	j.ok(n.Idle("idle")) // the unlock's answer has not arrived
	answers(1, "idle")

	j.ok(n.Lock(1, 0, "shared"))
	j.ok(n.Unlock(1, "nothing between")) // otherwise one origin could send any number of these
	sent(lock, unlock)
	answers(0, "shared")
	j.ok(n.Receive(1, mustNext(t, j.nodes[1])))
	answers(1, "nothing between")
	if n.peers[1].flight != 0 || len(n.pending) != 0 {
		t.Errorf("%d bytes and %d answers are left", n.peers[1].flight, len(n.pending))
	}
}
