package engine

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/leidenzipper/zipper/collectives"
	"github.com/leidenzipper/zipper/forwarder"
	"github.com/leidenzipper/zipper/jobenv"
	"github.com/leidenzipper/zipper/rma"
	"github.com/leidenzipper/zipper/wire"
)

const (
	// mangledCase is the environment's variable for one job: its kind, its seed, how many events were
	// planned and which of them happen.
	mangledCase = "ZIPPER_MANGLED"
	// mangledMost is when the long form stops.
	mangledMost = 45 * time.Minute
	// mangledHang is how long a job may stand still.
	mangledHang = 40 * time.Second
	// mangledPing is after how much silence the links of these jobs are pinged.
	mangledPing = 200 * time.Millisecond
)

// mangledLong is how many thousand events are asked for; 0: the short form.
func mangledLong() int {
	switch n, err := strconv.Atoi(os.Getenv("ZIPPER_LONG")); {
	case err != nil || n < 1:
		return 0
	case n == 1:
		return 100
	default:
		return n
	}
}

// startRailed is a job over n forwarders side by side.
func startRailed(n int) func(t *testing.T, level string) ([]*Engine, []*proxy) {
	return func(t *testing.T, level string) ([]*Engine, []*proxy) {
		job := jobenv.Job{ID: "test", Secret: "s", Level: level, Timeout: 20 * time.Second}
		var proxies []*proxy
		for range n {
			_, addr := serve(t, func(c *forwarder.Config) { c.PingInterval = mangledPing })
			proxies = append(proxies, newProxy(t, addr))
			job.Forwarders = append(job.Forwarders, proxies[len(proxies)-1].ln.Addr().String())
		}
		return joinJob(t, job, 2, 1, 2), proxies
	}
}

// startTrunks is a job over rows of two forwarders, with several connections between these.
func startTrunks(rows int) func(t *testing.T, level string) ([]*Engine, []*proxy) {
	return func(t *testing.T, level string) ([]*Engine, []*proxy) {
		n := newTrunkNet(t, rows)
		n.job.Level = level
		proxies := n.proxies
		for i := range n.job.Zippers { // and the ranks' links are harmed as well
			port := &n.job.Zippers[i].Ports[0]
			p := newProxy(t, port.Address)
			port.Address = p.ln.Addr().String()
			proxies = append(proxies, p)
		}
		engines := joinJob(t, n.job, 2, 2)
		for row := range rows {
			n.whole(t, row)
		}
		return engines, proxies
	}
}

// run runs a job while its network does what is planned.
func (n *mangledNet) run(t *testing.T, seed uint64, events []*event) (o outcome) {
	engines, proxies := n.start(t, n.level)
	for _, e := range engines {
		e.lock()
		e.links.Limit().Ping = mangledPing
		e.links.Limit().Silence = 10 * mangledPing
		e.unlock()
	}
	ready(t, engines)
	before := 0
	for _, p := range proxies {
		before += p.links()
	}
	var moved atomic.Int64 // rises with whatever goes on
	over := make(chan struct{})
	var driver, watch sync.WaitGroup
	var stop atomic.Bool
	driver.Go(func() {
		defer stop.Store(true)
		for _, ev := range events {
			ev.Proxy %= len(proxies)
			proxies[ev.Proxy].arm(ev)
			if !until(over, 3*time.Second, ev.Met.Load) {
				proxies[ev.Proxy].disarm(ev.Way)
			}
			if ev.Met.Load() {
				moved.Add(1)
				o.met = append(o.met, ev)
			}
			if !until(over, mangledHang, func() bool { return allUp(engines) }) {
				return
			}
		}
	})
	watch.Go(func() {
		for last := int64(-1); ; {
			select {
			case <-over:
				return
			case <-time.After(mangledHang):
			}
			if now := moved.Load(); now != last {
				last = now
				continue
			}
			for _, e := range engines {
				e.lock()
				e.fatal(ErrLink, 1, "the test: it hangs")
				e.unlock()
			}
			return
		}
	})
	errs := make([]error, len(engines))
	var ranks sync.WaitGroup
	for _, e := range engines {
		ranks.Go(func() {
			w, err := newWorker(t, e, seed)
			for round := 0; err == nil; round++ {
				var last bool
				if last, err = w.round(uint64(round), e.world.Rank == 0 && stop.Load()); last {
					break
				}
				moved.Add(1)
				if e.world.Rank == 0 {
					o.rounds++
				}
			}
			if err == nil {
				err = e.Finish()
			}
			if err != nil {
				e.lock()
				e.fatal(ErrLink, 1, "the test: "+err.Error()) // the others need not wait
				e.unlock()
				errs[e.world.Rank] = fmt.Errorf("rank %d: %w (%v, %q)", e.world.Rank, err, e.Err(), e.native.(*fakeNative).failed)
			}
		})
	}
	ranks.Wait()
	close(over)
	driver.Wait()
	watch.Wait()
	for _, p := range proxies {
		o.losses += p.links()
	}
	o.losses -= before
	o.err = errors.Join(errs...)
	return o
}

// until waits until something is so, or the job is over.
func until(over chan struct{}, limit time.Duration, so func() bool) bool {
	for end := time.Now().Add(limit); !so(); {
		select {
		case <-over:
			return false
		case <-time.After(time.Millisecond):
		}
		if time.Now().After(end) {
			return false
		}
	}
	return true
}

// allUp reports whether every engine sees every other rank over every rail.
func allUp(engines []*Engine) bool {
	for _, e := range engines {
		for _, r := range e.Rails() {
			if !r.Up || r.Unreachable > 0 {
				return false
			}
		}
	}
	return true
}

// worker is one rank of a mangled job: rounds of messages, collectives and one-sided operations,
// whose results all ranks know beforehand.
type worker struct {
	e      *Engine
	c      *Comm
	window *Window
	memory []byte // one place for each rank, twice, then a sum
	seed   uint64
}

// place is how many bytes a rank has in each other's window.
const place = 9000

func newWorker(t *testing.T, e *Engine, seed uint64) (*worker, error) {
	w := &worker{e: e, c: spanAll(t, e), memory: make([]byte, 2*place*e.world.Size()+1), seed: seed}
	var ranks []int32
	for r := range e.world.Size() {
		ranks = append(ranks, int32(r))
	}
	var err error
	if w.window, err = e.AddWindow(9, e.world.Rank, ranks, rma.Config{Unit: 1, Memory: w.memory}); err != nil {
		return nil, err
	}
	return w, w.collect([]collCase{newCollCase(collectives.OpBarrier, len(ranks), 0, 0)})
}

// round does some of everything; last: so rank 0 wants it to be.
func (w *worker) round(number uint64, stop bool) (last bool, err error) {
	n, me := w.e.world.Size(), w.e.world.Rank
	own := rand.New(rand.NewPCG(w.seed^number<<32, uint64(me)))
	if err := exchangeOn(w.e, w.c, 3, own); err != nil {
		return false, err
	}
	all := rand.New(rand.NewPCG(w.seed^number<<32, 1<<40)) // the same in each rank
	cases := []collCase{newCollCase(collectives.OpBarrier, n, 0, 0)}
	for range 4 {
		op := collectives.OpBarrier + collectives.Op(all.IntN(int(collectives.OpExscan-collectives.OpBarrier)+1))
		cases = append(cases, newCollCase(op, n, []int{0, 1, 100, 3000, 70 << 10}[all.IntN(5)], all.IntN(n)))
	}
	if err := w.collect(cases); err != nil {
		return false, err
	}
	if err := w.oneSided(int(number), all); err != nil {
		return false, err
	}
	word := newCollCase(collectives.OpBcast, n, 1, 0)
	word.args[me].Recv = []byte{0}
	if stop {
		word.args[me].Recv[0] = 1
	}
	word.want[me] = nil
	err = w.collect([]collCase{word})
	return word.args[me].Recv[0] == 1, err
}

// collect runs collectives, all at once, and compares.
func (w *worker) collect(cases []collCase) error {
	me := w.e.world.Rank
	cells := make([]Cell, len(cases))
	for i := range cases {
		if err := w.e.Collective(w.c, cases[i].args[me], &cells[i]); err != nil {
			return err
		}
	}
	for i, c := range cases {
		await(w.e, &cells[i])
		if err := cells[i].Err(); err != nil {
			return err
		}
		if c.want[me] != nil && !bytes.Equal(c.args[me].Recv, c.want[me]) {
			return fmt.Errorf("%v of %d bytes: a wrong result", c.args[me].Op, c.args[me].Count)
		}
	}
	return nil
}

func (w *worker) barrier() error {
	return w.collect([]collCase{newCollCase(collectives.OpBarrier, w.e.world.Size(), 0, 0)})
}

// oneSided puts, adds up and gets, between locks and between fences.
func (w *worker) oneSided(round int, all *rand.Rand) error {
	n, me := w.e.world.Size(), w.e.world.Rank
	size := 1 + all.IntN(place)
	to := func(origin int) int { return (origin + round) % n }
	text := func(origin int) []byte { return pattern(origin+round*7, size) }
	call := func(f func(d *rma.Node, token any) error) error {
		var cell Cell
		if err := w.window.Call(&cell, f); err != nil {
			return err
		}
		await(w.e, &cell)
		return cell.Err()
	}
	clear(w.memory)
	if err := w.barrier(); err != nil {
		return err
	}
	target, got := to(me), make([]byte, size)
	err := call(func(d *rma.Node, token any) error { return d.Lock(target, rma.How(round%2)*rma.Exclusive, token) })
	if err != nil {
		return err
	}
	for _, op := range []rma.Operation{
		{Verb: rma.Put, Disp: int64(me * place), Data: flat(text(me))},
		{Verb: rma.Accumulate, Disp: int64(2 * n * place), Data: flat([]byte{byte(me + 1)})},
		{Verb: rma.Get, Disp: int64(me * place), Result: flat(got)},
	} {
		if err := w.transfer(op, target); err != nil {
			return err
		}
	}
	if err := call(func(d *rma.Node, token any) error { return d.Unlock(target, token) }); err != nil {
		return err
	}
	if !bytes.Equal(got, text(me)) {
		return errors.New("get: not what was put there")
	}
	if err := call(func(d *rma.Node, token any) error { return d.Fence(true, token) }); err != nil {
		return err
	}
	if err := w.barrier(); err != nil {
		return err
	}
	for to := range n {
		if err := w.transfer(rma.Operation{Verb: rma.Put, Disp: int64((n + me) * place), Data: flat(text(me + to))}, to); err != nil {
			return err
		}
	}
	if err := call(func(d *rma.Node, token any) error { return d.Fence(false, token) }); err != nil {
		return err
	}
	if err := w.barrier(); err != nil {
		return err
	}
	sum := byte(0)
	for origin := range n {
		if to(origin) == me {
			sum += byte(origin + 1)
			if !bytes.Equal(w.memory[origin*place:][:size], text(origin)) {
				return fmt.Errorf("what rank %d has put between locks is wrong", origin)
			}
		}
		if !bytes.Equal(w.memory[(n+origin)*place:][:size], text(origin+me)) {
			return fmt.Errorf("what rank %d has put between fences is wrong", origin)
		}
	}
	if w.memory[2*n*place] != sum {
		return fmt.Errorf("the sum is %d, want %d", w.memory[2*n*place], sum)
	}
	return nil
}

func (w *worker) transfer(op rma.Operation, target int) error {
	op.Target = target
	op.There = op.Data.Layout
	if op.Verb == rma.Get {
		op.There = op.Result.Layout
	}
	var cell Cell
	left, err := w.window.Operate(op, &cell)
	for ; err == nil && left != 0; left, err = w.window.More(left) {
		w.e.Progress(time.Millisecond)
	}
	if err != nil {
		return err
	}
	await(w.e, &cell)
	return cell.Err()
}

// shrink runs a job that fails again, in processes of their own, with fewer and fewer of its events.
func shrink(t *testing.T, net mangledNet, seed uint64, planned int, met []*event) string {
	self, err := os.Executable()
	if err != nil {
		return err.Error()
	}
	spell := func(events []*event) string {
		s := fmt.Sprintf("%s/%d/%d/", net.name, seed, planned)
		for _, ev := range events {
			s += fmt.Sprintf("%d,", ev.Number)
		}
		return strings.TrimSuffix(s, ",")
	}
	end := time.Now().Add(4 * time.Minute)
	left := fewest(met, func(some []*event) bool {
		for range 3 { // what it meets is not quite the same each time
			ctx, cancel := context.WithDeadline(t.Context(), end)
			cmd := exec.CommandContext(ctx, self, "-test.run", "^TestMangled$", "-test.timeout", "3m")
			cmd.Env = append(os.Environ(), mangledCase+"="+spell(some))
			err := cmd.Run()
			late := ctx.Err() != nil
			cancel()
			if late {
				return false
			}
			if err != nil {
				return true
			}
		}
		return false
	})
	return fmt.Sprintf("%s='%s' go test -run '^TestMangled$' ./mmpi/engine\n%s", mangledCase, spell(left), listed(left))
}

// fewest finds a short list of events that fails, if the whole does: delta debugging.
func fewest(all []*event, fails func(some []*event) bool) []*event {
	for size := (len(all) + 1) / 2; size >= 1 && len(all) > 1; {
		shorter := false
		for from := 0; from < len(all) && len(all) > 1; {
			some := slices.Concat(all[:from], all[min(from+size, len(all)):])
			if len(some) > 0 && fails(some) {
				all, shorter = some, true
			} else {
				from += size
			}
		}
		if size == 1 && !shorter {
			break
		}
		size = max(1, size/2)
		if size == 1 && len(all) == 1 {
			break
		}
	}
	return all
}

// runCase runs one job, of mangledCase.
func runCase(t *testing.T, which string) {
	f := strings.Split(which, "/")
	if len(f) != 4 {
		t.Fatalf("%s=%q", mangledCase, which)
	}
	i := slices.IndexFunc(mangledNets, func(n mangledNet) bool { return n.name == f[0] })
	seed, err := strconv.ParseUint(f[1], 10, 64)
	planned, err2 := strconv.Atoi(f[2])
	if i < 0 || err != nil || err2 != nil {
		t.Fatalf("%s=%q", mangledCase, which)
	}
	events := plan(seed, planned)
	some := slices.DeleteFunc(slices.Clone(events), func(ev *event) bool {
		return !slices.Contains(strings.Split(f[3], ","), strconv.Itoa(ev.Number))
	})
	o := mangledNets[i].run(t, seed, some)
	t.Logf("%d rounds, %d losses\n%s", o.rounds, o.losses, listed(o.met))
	if o.err != nil {
		t.Error(o.err)
	}
}

// TestFewest: of many events those are found that a failure needs.
func TestFewest(t *testing.T) {
	all, runs := plan(1, 200), 0
	left := fewest(all, func(some []*event) bool {
		runs++
		has := func(k int) bool { return slices.ContainsFunc(some, func(ev *event) bool { return ev.Number == k }) }
		return has(17) && has(142)
	})
	if len(left) != 2 || left[0].Number != 17 || left[1].Number != 142 || runs > 100 {
		t.Errorf("%d runs, left:\n%s", runs, listed(left))
	}
}

// TestLeftOut: a whole frame that is left out, and nothing follows it, is noticed, over links of ranks
// and between forwarders: the link is made again and the frame is sent again.
func TestLeftOut(t *testing.T) {
	for _, net := range mangledNets {
		t.Run(net.name, func(t *testing.T) {
			engines, proxies := net.start(t, net.level)
			ready(t, engines)
			first, last := engines[0], engines[len(engines)-1]
			there, here := spanAll(t, first), spanAll(t, last)
			drop := slices.IndexFunc(harms, func(h harm) bool { return h.name == "drop frame" })
			met := 0
			for i := range 2 * len(proxies) { // some of which the message does not come by
				out, in := []byte{byte(i + 1)}, make([]byte, 1)
				var sent, got Cell
				if err := last.Irecv(here, KindP2P, in, 0, 1, &got); err != nil {
					t.Fatal(err)
				}
				ev := &event{Way: i % 2, Harm: drop, Only: wire.TypeEager}
				proxies[i/2].arm(ev)
				begin := time.Now()
				if err := first.Isend(there, KindP2P, out, len(engines)-1, 1, false, &sent); err != nil {
					t.Fatal(err)
				}
				for !got.Done() && time.Since(begin) < 10*time.Second {
					last.Progress(time.Millisecond)
					first.Progress(0)
				}
				proxies[i/2].disarm(ev.Way)
				if !got.Done() || got.Err() != nil || in[0] != out[0] {
					t.Fatalf("proxy %d, way %d: %v left out (%v): done %v after %v, %v", i/2, i%2, ev.Typ, ev.Met.Load(), got.Done(), time.Since(begin), got.Err())
				}
				ready(t, engines)
				if ev.Met.Load() {
					met++
					t.Logf("proxy %d, way %d: %v", i/2, i%2, time.Since(begin).Round(time.Millisecond))
				}
			}
			if met < 2 { // to the forwarder, and from it
				t.Errorf("the message was left out %d times", met)
			}
		})
	}
}
