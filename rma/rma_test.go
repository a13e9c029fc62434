package rma

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
)

const sum uint8 = 9 // the only function of the tests' arithmetic, on uint64

func compute(fn, _ uint8, inout, in []byte) error {
	if fn != sum || len(inout)%8 != 0 {
		return fmt.Errorf("function %d over %d bytes", fn, len(inout))
	}
	for i := 0; i < len(inout); i += 8 {
		binary.LittleEndian.PutUint64(inout[i:],
			binary.LittleEndian.Uint64(inout[i:])+binary.LittleEndian.Uint64(in[i:]))
	}
	return nil
}

// job is the nodes of a window and the messages between them, which arrive in any order that keeps
// each pair's.
type job struct {
	t     *testing.T
	nodes []*Node
	mem   [][]byte
	ways  map[[2]int][][]byte
	rnd   *rand.Rand
	done  map[any]bool
}

func newJob(t *testing.T, n, size int, seed uint64) *job {
	j := &job{t: t, ways: map[[2]int][][]byte{}, rnd: rand.New(rand.NewPCG(seed, 1)), done: map[any]bool{}}
	for i := range n {
		j.mem = append(j.mem, make([]byte, size))
		j.nodes = append(j.nodes, NewNode(Config{Rank: i, Size: n, Unit: 8, Memory: j.mem[i], Compute: compute}))
	}
	return j
}

// collect takes what the nodes have to say.
func (j *job) collect() {
	for i, n := range j.nodes {
		for o, ok := n.Next(); ok; o, ok = n.Next() {
			k := [2]int{i, o.To}
			j.ways[k] = append(j.ways[k], bytes.Clone(o.Message))
			n.Reuse(o.Message)
		}
		for _, d := range n.Done() {
			if j.done[d] {
				j.t.Fatalf("%v is over twice", d)
			}
			j.done[d] = true
		}
	}
}

// step delivers one message; false: there is none.
func (j *job) step() bool {
	j.collect()
	var ready [][2]int
	for from := range j.nodes {
		for to := range j.nodes {
			if len(j.ways[[2]int{from, to}]) > 0 {
				ready = append(ready, [2]int{from, to})
			}
		}
	}
	if len(ready) == 0 {
		return false
	}
	k := ready[j.rnd.IntN(len(ready))]
	m := j.ways[k][0]
	j.ways[k] = j.ways[k][1:]
	if err := j.nodes[k[1]].Receive(k[0], m); err != nil {
		j.t.Fatal(err)
	}
	j.collect()
	return true
}

func (j *job) run() {
	for j.step() {
	}
}

func (j *job) ok(err error) {
	j.t.Helper()
	if err != nil {
		j.t.Fatal(err)
	}
}

func flat(b []byte) View {
	return View{Bytes(b), Layout{[]Span{{0, int64(len(b))}}, 0, 1}}
}

func (j *job) operate(rank int, op Operation, token any) {
	j.t.Helper()
	x, err := j.nodes[rank].Begin(op, token)
	j.ok(err)
	for !j.nodes[rank].Issue(x) {
		for j.nodes[rank].Full(op.Target) {
			if !j.step() {
				j.t.Fatal("nothing moves, and the target is full")
			}
		}
	}
}

func u64(v uint64) []byte { return binary.LittleEndian.AppendUint64(nil, v) }

func fetchAdd(target int, disp int64, v uint64, result []byte) Operation {
	return Operation{Verb: Fetch, Fn: sum, Target: target, Disp: disp, Data: flat(u64(v)),
		There: flat(make([]byte, 8)).Layout, Result: flat(result)}
}

// Fetched tickets are all different, whatever the order of delivery, from this process too.
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

// Reading, changing and writing under an exclusive lock loses nothing.
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

// What waits for a lock that is not waited for is kept, in order, and done when it is granted.
func TestStalled(t *testing.T) {
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

// An exclusive lock, one that is to be awaited, and the own are there when the call is over.
func TestAwaited(t *testing.T) {
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

// With MPI_MODE_NOCHECK nobody is asked, so nobody has to wait, and the target forgets nothing that
// it knows.
func TestUnchecked(t *testing.T) {
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
	j.ok(j.nodes[1].Lock(2, Exclusive, "beside")) // what coarray libraries do with events: they look at their own memory until another has changed it
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

// A reader does not overtake a waiting writer for ever.
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

// Post, start, complete, wait in any order of arrival, twice.
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

// Transfers of many messages between layouts with gaps.
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
		t.Fatal("what was put is not what comes back")
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

func TestDynamic(t *testing.T) {
	j := newJob(t, 2, 0, 1)
	mem := make([]byte, 32)
	j.nodes[1] = NewNode(Config{Rank: 1, Size: 2, Dynamic: true, Compute: compute})
	j.ok(j.nodes[1].Attach(1<<47, mem))
	if err := j.nodes[1].Attach(1<<47+8, mem[:8]); err == nil {
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
	if _, err := j.nodes[1].memory(1<<47, 0, 8); !errors.Is(err, ErrRange) {
		t.Errorf("detached: %v", err)
	}
}

// Regions that follow each other without a gap are one to whoever names memory in them.
func TestNeighbours(t *testing.T) {
	const first = uint64(1) << 47
	mem := make([]byte, 64)
	n := NewNode(Config{Rank: 1, Size: 2, Dynamic: true, Compute: compute,
		Across: func(addr uint64, n int) []byte { return mem[addr-first:][:n] }})
	attach := func(at, size uint64) error { return n.Attach(first+at, mem[at:][:size:size]) }
	for _, r := range [][2]uint64{{40, 8}, {0, 16}, {16, 0}, {16, 8}, {24, 8}} { // 32 to 40: a gap
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
		b, err := n.memory(int64(first), int64(at), uint32(size))
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

// What has results is answered anyway: a flush after it, and an unlock, take no message of their
// own that anybody waits for.
func TestAnswersTell(t *testing.T) {
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

	j.ok(n.Lock(1, 0, "shared")) // is not waited for
	fetch()
	j.ok(n.Unlock(1, "unlock"))
	sent(lock, Fetch, unlock)
	answers(0, "shared")
	j.ok(n.Receive(1, mustNext(t, j.nodes[1])))
	answers(1, "unlock")
	j.ok(n.Idle("idle")) // the unlock's answer is to come
	answers(1, "idle")

	j.ok(n.Lock(1, 0, "shared"))
	j.ok(n.Unlock(1, "nothing between")) // else one origin could send any number of these
	sent(lock, unlock)
	answers(0, "shared")
	j.ok(n.Receive(1, mustNext(t, j.nodes[1])))
	answers(1, "nothing between")
	if n.peers[1].flight != 0 || len(n.pending) != 0 {
		t.Errorf("%d bytes and %d answers are left", n.peers[1].flight, len(n.pending))
	}
}

func mustNext(t *testing.T, n *Node) []byte {
	t.Helper()
	o, ok := n.Next()
	if !ok {
		t.Fatal("nothing was sent")
	}
	return o.Message
}
