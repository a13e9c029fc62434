package engine

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/leidenzipper/zipper/forwarder"
	"github.com/leidenzipper/zipper/forwarder/forwardertest"
	"github.com/leidenzipper/zipper/internal/dial"
	"github.com/leidenzipper/zipper/internal/jobenv"
)

// live starts a forwarder on loopback and joins a job of clusters of these sizes: real sockets,
// real threads, only native MPI is simulated.
func live(t testing.TB, sizes ...int) []*Engine {
	t.Helper()
	_, addr := serve(t)
	return joinAll(t, []string{addr}, sizes...)
}

// serve runs a forwarder on loopback until the test ends.
func serve(t testing.TB, change ...func(*forwarder.Config)) (*forwarder.Forwarder, string) {
	t.Helper()
	cfg := forwarder.Config{Loops: 1, Linger: time.Second}
	for _, c := range change {
		c(&cfg)
	}
	return forwardertest.Serve(t, cfg)
}

// joinAll joins all ranks of a job at these forwarders.
func joinAll(t testing.TB, forwarders []string, sizes ...int) []*Engine {
	t.Helper()
	return joinJob(t, jobenv.Job{ID: "test", Secret: "s", Forwarders: forwarders, Timeout: 20 * time.Second}, sizes...)
}

// BootForTest is boot.Join: only the outer test package (boot_test.go) can import boot.
var BootForTest func(job jobenv.Job, rank, size int, native Native) (*Engine, error)

func joinJob(t testing.TB, job jobenv.Job, sizes ...int) []*Engine {
	t.Helper()
	return joinEach(t, job, func(int, *jobenv.Job) {}, sizes...)
}

// joinEach joins all ranks of a job, after own has changed the job for each of them.
func joinEach(t testing.TB, job jobenv.Job, own func(rank int, j *jobenv.Job), sizes ...int) []*Engine {
	t.Helper()
	for i, n := range sizes {
		job.Layout = append(job.Layout, jobenv.Cluster{Name: string(rune('a' + i)), Size: n})
	}
	type place struct {
		cluster     string
		size, local int
		first       int
		board       *board
	}
	var places []place
	for _, c := range job.Layout {
		b, first := &board{}, len(places)
		for r := range c.Size {
			places = append(places, place{c.Name, c.Size, r, first, b})
		}
	}
	engines := make([]*Engine, len(places))
	var wg sync.WaitGroup
	for i, p := range places {
		wg.Go(func() {
			j := job
			j.Cluster = p.cluster
			if len(job.Zippers) > 0 {
				j.WithZippers(job.Zippers)
			}
			own(i, &j)
			e, err := BootForTest(j, p.local, p.size, &fakeNative{board: p.board, rank: p.local, first: p.first})
			if err != nil {
				t.Error(err)
				return
			}
			engines[i] = e
			t.Cleanup(e.closeUnlessClosed)
		})
	}
	wg.Wait()
	if t.Failed() {
		t.FailNow()
	}
	return engines
}

// closeUnlessClosed ends an engine whose test has not: it would go on dialling.
func (e *Engine) closeUnlessClosed() {
	e.lock()
	closed := e.stopping
	e.unlock()
	if !closed {
		e.close()
	}
}

// spanAll makes MPI_COMM_WORLD.
func spanAll(t testing.TB, e *Engine) *Comm {
	var world, native []int32
	for r := range e.world.Size() {
		world = append(world, int32(r))
		native = append(native, Remote)
		if e.sameCluster(r) {
			native[r] = int32(r - e.firstMine)
		}
	}
	c, err := e.AddComm(1, WorldContext, e.world.Rank, world, native)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// await waits for an operation as the shim's wait loop does.
func await(e *Engine, c *Cell) {
	for spins := 0; !c.Done(); spins++ {
		if spins < 20 {
			e.Progress(0)
		} else {
			e.Progress(time.Millisecond)
		}
	}
}

// TestTrafficArrivesInOrder checks that messages between all pairs of ranks, within a cluster and
// between clusters, eager and long, received with wildcards, arrive whole and, from each source, in
// order.
func TestTrafficArrivesInOrder(t *testing.T) {
	for seed := range uint64(3) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) { randomTraffic(t, live(t, 2, 1, 2), seed) })
	}
	t.Run("classic", func(t *testing.T) {
		_, addr := serve(t, func(c *forwarder.Config) { c.Protocol = forwarder.Classic })
		job := jobenv.Job{ID: "test", Secret: "s", Forwarders: []string{addr}, Timeout: 20 * time.Second,
			Protocol: jobenv.Classic}
		randomTraffic(t, joinJob(t, job, 2, 1, 2), 1)
	})
}

// chained starts forwarders between neighbours and joins clusters of these sizes, in a row.
func chained(t testing.TB, sizes ...int) ([]*Engine, []*forwarder.Forwarder) {
	t.Helper()
	job := jobenv.Job{ID: "test", Secret: "s", Timeout: 20 * time.Second}
	var zippers []jobenv.Zipper
	var all []*forwarder.Forwarder
	for i := range len(sizes) - 1 {
		f, addr := serve(t, func(c *forwarder.Config) { c.Dial = dial.Open })
		all = append(all, f)
		zippers = append(zippers, jobenv.Zipper{Ports: []jobenv.Port{{Network: string(rune('a' + i)), Address: addr},
			{Network: string(rune('b' + i)), Address: addr}}})
	}
	job.Zippers = zippers
	return joinJob(t, job, sizes...), all
}

// TestTrafficCrossesHub checks the traffic of TestTrafficArrivesInOrder between clusters that share
// no forwarder, over a hub without ranks that both border nodes dial.
func TestTrafficCrossesHub(t *testing.T) {
	var addrs [3]string
	for i := range addrs {
		_, addrs[i] = serve(t, func(c *forwarder.Config) { c.Dial = dial.Open })
	}
	zippers := []jobenv.Zipper{
		{Ports: []jobenv.Port{{Network: "u", Address: addrs[0]}, {Network: "v", Address: addrs[0]}}},
		{Ports: []jobenv.Port{{Network: "a", Address: addrs[1]}, {Network: "u"}}},
		{Ports: []jobenv.Port{{Network: "b", Address: addrs[2]}, {Network: "v"}}},
	}
	job := jobenv.Job{ID: "test", Secret: "s", Timeout: 20 * time.Second, Networks: []string{"u", "v"},
		Zippers: zippers}
	randomTraffic(t, joinJob(t, job, 2, 2), 5)
}

// TestTrafficCrossesHops checks the traffic of TestTrafficArrivesInOrder over up to three
// forwarders.
func TestTrafficCrossesHops(t *testing.T) {
	for seed, sizes := range [][]int{{2, 1, 2}, {1, 2, 1, 1}} {
		t.Run(fmt.Sprint(sizes), func(t *testing.T) {
			engines, forwarders := chained(t, sizes...)
			randomTraffic(t, engines, uint64(seed))
			for i, f := range forwarders {
				end := time.Now().Add(10 * time.Second)
				for len(f.Status().Past) == 0 && time.Now().Before(end) {
					time.Sleep(time.Millisecond)
				}
				if p := f.Status().Past; len(p) != 1 || !p[0].OK {
					t.Errorf("forwarder %d: %+v", i, p)
				}
			}
		})
	}
}

func randomTraffic(t *testing.T, engines []*Engine, seed uint64) {
	const each = 40 // messages for every pair
	var wg sync.WaitGroup
	for _, e := range engines {
		wg.Go(func() {
			if err := exchangeAll(t, e, each, rand.New(rand.NewPCG(seed, uint64(e.world.Rank)))); err != nil {
				t.Errorf("rank %d: %v", e.world.Rank, err)
			}
			if err := e.Finish(); err != nil {
				t.Errorf("rank %d: %v", e.world.Rank, err)
			}
		})
	}
	wg.Wait()
}

func exchangeAll(t *testing.T, e *Engine, each int, r *rand.Rand) error {
	if err := exchangeOn(e, spanAll(t, e), each, r); err != nil {
		return err
	}
	e.lock()
	defer e.unlock()
	return e.check()
}

// exchangeOn sends that many messages to every other rank, and receives as many from each.
func exchangeOn(e *Engine, c *Comm, each int, r *rand.Rand) error {
	me := e.world.Rank
	var to []int
	for d := range e.world.Size() {
		for range each {
			if d != me {
				to = append(to, d)
			}
		}
	}
	r.Shuffle(len(to), func(i, j int) { to[i], to[j] = to[j], to[i] })
	sent := make([]uint32, e.world.Size())
	got := make([]uint32, e.world.Size())
	var sends []*Cell
	type recv struct {
		cell Cell
		buf  []byte
	}
	var recvs []*recv
	check := func() error {
		v := recvs[0]
		recvs = recvs[1:]
		await(e, &v.cell)
		if err := v.cell.Err(); err != nil {
			return err
		}
		b := v.buf[:v.cell.Bytes]
		src, num := int(binary.LittleEndian.Uint32(b)), binary.LittleEndian.Uint32(b[4:])
		if src != int(v.cell.Source) || num != got[src] || int(v.cell.Tag) != int(num%7) {
			return fmt.Errorf("message %d of rank %d where %d of rank %d with tag %d was due", num, src, got[src],
				v.cell.Source, v.cell.Tag)
		}
		got[src]++
		for i := 8; i < len(b); i++ {
			if b[i] != byte(i*int(num+1)+src) {
				return fmt.Errorf("message %d of rank %d: byte %d of %d is wrong", num, src, i, len(b))
			}
		}
		return nil
	}
	for i := range to {
		v := &recv{buf: make([]byte, 300<<10)}
		if err := e.Irecv(c, KindP2P, v.buf, AnySource, AnyTag, &v.cell); err != nil {
			return err
		}
		recvs = append(recvs, v)
		size := 8 + r.IntN(100)
		if r.IntN(4) == 0 {
			size = 8 + r.IntN(300<<10-8)
		}
		d, b := to[i], make([]byte, size)
		num := sent[d]
		sent[d]++
		binary.LittleEndian.PutUint32(b, uint32(me))
		binary.LittleEndian.PutUint32(b[4:], num)
		for i := 8; i < len(b); i++ {
			b[i] = byte(i*int(num+1) + me)
		}
		if e.sameCluster(d) {
			e.native.(*fakeNative).send(1, d-e.firstMine, int(num%7), b)
		} else {
			cell := new(Cell)
			if err := e.Isend(c, KindP2P, b, d, int(num%7), r.IntN(5) == 0, cell); err != nil {
				return err
			}
			sends = append(sends, cell)
		}
		for len(recvs) > 16 {
			if err := check(); err != nil {
				return err
			}
		}
	}
	for len(recvs) > 0 {
		if err := check(); err != nil {
			return err
		}
	}
	for _, s := range sends {
		await(e, s)
		if err := s.Err(); err != nil {
			return err
		}
	}
	return nil
}
