package rma

import (
	"fmt"
	"testing"
)

// TestTickets checks that all fetched tickets are different for any order of delivery, including
// those of the target itself.
func TestTickets(t *testing.T) {
	for seed := range uint64(50) {
		j := newJob(t, 4, 64, seed)
		var tickets [][]byte
		for i, n := range j.nodes {
			j.ok(n.LockAll(false, fmt.Sprint("lock", i)))
		}
		for range 10 {
			for i := range j.nodes {
				r := make([]byte, 8)
				tickets = append(tickets, r)
				j.operate(i, fetchAdd(2, 3, 1, r), len(tickets))
				j.step()
			}
		}
		for i, n := range j.nodes {
			j.ok(n.UnlockAll(fmt.Sprint("unlock", i)))
		}
		j.run()
		seen := map[uint64]bool{}
		for i, r := range tickets {
			if v := le.Uint64(r); !j.done[i+1] || seen[v] || v >= 40 {
				t.Fatalf("seed %d: ticket %d is %d, again %v, done %v", seed, i, v, seen[v], j.done[i+1])
			} else {
				seen[v] = true
			}
		}
		for i := range j.nodes {
			if !j.done[fmt.Sprint("unlock", i)] {
				t.Fatalf("seed %d: rank %d is not unlocked", seed, i)
			}
		}
	}
}

// TestExclusive checks that reading, changing and writing under an exclusive lock loses no update.
func TestExclusive(t *testing.T) {
	for seed := range uint64(50) {
		const ranks, rounds = 4, 5
		j := newJob(t, ranks, 8, seed)
		type actor struct {
			state, round int
			value        []byte
		}
		actors := make([]actor, ranks)
		active := ranks
		for active > 0 {
			i := j.rnd.IntN(ranks)
			a, n := &actors[i], j.nodes[i]
			key := fmt.Sprint(i, a.round, a.state)
			if a.round == rounds || a.state > 0 && !j.done[key] {
				j.step()
				continue
			}
			a.state++
			key = fmt.Sprint(i, a.round, a.state)
			switch a.state {
			case 1:
				j.ok(n.Lock(1, Exclusive, key))
			case 2:
				a.value = make([]byte, 8)
				j.operate(i, Operation{Verb: Get, Target: 1, There: flat(a.value).Layout, Result: flat(a.value)}, key)
			case 3:
				j.operate(i, Operation{Verb: Put, Target: 1, Data: flat(u64(le.Uint64(a.value) + 1)),
					There: flat(a.value).Layout}, nil)
				j.ok(n.Unlock(1, key))
			case 4:
				if a.state, a.round = 0, a.round+1; a.round == rounds {
					active--
				}
			}
			j.collect()
		}
		if v := le.Uint64(j.mem[1]); v != ranks*rounds {
			t.Fatalf("seed %d: %d, want %d", seed, v, ranks*rounds)
		}
	}
}

// TestOperationsWaitForTheLock checks that operations under a lock that is not granted yet are kept
// in order, and carried out when it is granted.
func TestOperationsWaitForTheLock(t *testing.T) {
	for name, lock := range map[string]func(n *Node) error{
		"lock_all": func(n *Node) error { return n.LockAll(false, "mine") },
		"shared":   func(n *Node) error { return n.Lock(2, 0, "mine") },
	} {
		t.Run(name, func(t *testing.T) {
			j := newJob(t, 3, 8, 1)
			j.ok(j.nodes[0].Lock(2, Exclusive, "held"))
			j.run()
			j.ok(lock(j.nodes[1]))
			for i := range uint64(3) {
				j.operate(1, Operation{Verb: Put, Target: 2, Data: flat(u64(i + 7)),
					There: flat(make([]byte, 8)).Layout}, nil)
			}
			j.ok(j.nodes[1].Flush(2, "flushed"))
			j.run()
			if !j.done["held"] || !j.done["mine"] || j.done["flushed"] || le.Uint64(j.mem[2]) != 0 {
				t.Fatalf("before the lock is free: %v, memory %d", j.done, j.mem[2])
			}
			j.ok(j.nodes[0].Unlock(2, "free"))
			j.run()
			if !j.done["flushed"] || le.Uint64(j.mem[2]) != 9 {
				t.Fatalf("after: %v, memory %d", j.done, j.mem[2])
			}
		})
	}
}

// TestAwaitedLocksAreHeld checks that an exclusive lock, one with Awaited, and the own are held
// when the call has completed.
func TestAwaitedLocksAreHeld(t *testing.T) {
	j := newJob(t, 3, 8, 1)
	j.ok(j.nodes[0].Lock(2, Exclusive, "held"))
	j.run()
	j.ok(j.nodes[1].Lock(2, Awaited, "shared"))
	j.ok(j.nodes[2].Lock(2, 0, "own"))
	j.run()
	if j.done["shared"] || j.done["own"] {
		t.Fatalf("before the lock is free: %v", j.done)
	}
	j.ok(j.nodes[0].Unlock(2, "free"))
	j.run()
	j.ok(j.nodes[0].Lock(2, Exclusive, "again"))
	j.run()
	if !j.done["shared"] || !j.done["own"] || j.done["again"] {
		t.Fatalf("after: %v", j.done)
	}
}

// TestUncheckedLocksSendNothing checks that locks with MPI_MODE_NOCHECK send no request and never
// wait, and that the target's lock table does not change.
func TestUncheckedLocksSendNothing(t *testing.T) {
	j := newJob(t, 3, 8, 1)
	j.ok(j.nodes[0].Lock(2, Exclusive, "held"))
	j.run()
	put := func(from int, v uint64) {
		j.operate(from, Operation{Verb: Put, Target: 2, Data: flat(u64(v)), There: flat(make([]byte, 8)).Layout}, nil)
	}
	j.ok(j.nodes[1].Lock(2, Exclusive|Unchecked, "one"))
	put(1, 7)
	j.ok(j.nodes[1].Unlock(2, "put"))
	j.run()
	if !j.done["one"] || !j.done["put"] || le.Uint64(j.mem[2]) != 7 {
		t.Fatalf("lock: %v, memory %d", j.done, j.mem[2])
	}
	j.ok(j.nodes[2].LockAll(true, "all"))
	put(2, 8)
	j.ok(j.nodes[2].UnlockAll("over"))
	j.ok(j.nodes[0].Unlock(2, "free"))
	j.ok(j.nodes[2].LockAll(true, "looking"))
	// Coarray libraries wait for events in this way: they poll their own memory until another
	// process has changed it.
	j.ok(j.nodes[1].Lock(2, Exclusive, "beside"))
	j.run()
	if !j.done["beside"] {
		t.Fatal("an unchecked lock keeps others out")
	}
	j.ok(j.nodes[1].Unlock(2, "left"))
	j.ok(j.nodes[2].UnlockAll("looked"))
	j.ok(j.nodes[2].LockAll(false, "again"))
	j.ok(j.nodes[2].UnlockAll("end"))
	j.run()
	if !j.done["over"] || !j.done["free"] || !j.done["end"] || le.Uint64(j.mem[2]) != 8 {
		t.Fatalf("lock_all: %v, memory %d", j.done, j.mem[2])
	}
	j.ok(j.nodes[0].Idle(nil))
}

// TestFair checks that readers do not overtake a waiting writer for ever.
func TestFair(t *testing.T) {
	var l lockTable
	if !l.request(lockRequest{0, 1, false}) || l.request(lockRequest{1, 2, true}) ||
		l.request(lockRequest{2, 3, false}) {
		t.Fatal("shared is granted, exclusive waits, and shared behind it")
	}
	if g, ok := l.release(0); !ok || len(g) != 1 || g[0].rank != 1 {
		t.Fatalf("granted %v", g)
	}
	if g, ok := l.release(1); !ok || len(g) != 1 || g[0].rank != 2 {
		t.Fatalf("granted %v", g)
	}
	if _, ok := l.release(1); ok {
		t.Fatal("released twice")
	}
}
