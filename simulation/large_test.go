package simulation

import (
	"context"
	"encoding/binary"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/leidenzipper/zipper/collectives"
	"github.com/leidenzipper/zipper/forwarder"
	"github.com/leidenzipper/zipper/internal/jobenv"
	"github.com/leidenzipper/zipper/internal/wire"
	"github.com/leidenzipper/zipper/mmpi/engine"
	"github.com/leidenzipper/zipper/simulation/kernel"
	"github.com/leidenzipper/zipper/simulation/process"
)

// largeVariable names numbers of ranks for TestLarge.
const largeVariable = "ZIPPER_LARGE"

// TestLarge runs jobs of two clusters of many ranks and one forwarder, and tells what gathering, a
// barrier, an allreduce and an alltoall of 8 bytes, and MPI_Finalize take: in virtual time on a
// network and processors of a usual speed; in bytes; in this process's time and memory. Every
// result is checked.
func TestLarge(t *testing.T) {
	sizes := "64"
	if s := os.Getenv(largeVariable); s != "" {
		sizes = s
	}
	for s := range strings.SplitSeq(sizes, ",") {
		n, err := strconv.Atoi(s)
		if err != nil || n < 2 {
			t.Fatalf("%s=%q", largeVariable, sizes)
		}
		l := newLarge(n)
		if err := l.run(); err != nil {
			t.Fatal(err)
		}
		t.Log(l)
	}
}

// phases are what all ranks do, one after the other.
var phases = []string{"gather", "barrier", "allreduce", "alltoall", "finalize"}

// large is such a job.
type large struct {
	n        int
	k        *kernel.Kernel
	world    process.World
	zip      *process.Forwarder
	node     *kernel.Host
	in       *kernel.Line
	zipOut   *kernel.Line
	members  []*process.Member
	comms    []*engine.Comm
	phase    int
	through  int   // ranks that are, with the phase
	gates    []int // that they wait at
	marks    []mark
	err      error
	alltoall bool
	counts   []int64 // and places, of everybody's blocks of an alltoall: the same for all ranks
	displs   []int64
	bare     bool // no engines: ranks only join
}

// mark is where things stand at the end of a phase.
type mark struct {
	at   time.Duration
	used time.Duration // by the forwarder, virtual
	wall time.Duration // of this process
	sent int64         // bytes to the forwarder, and from it
	got  int64
	heap uint64
}

// Costs of a usual processor, and rates of usual adapters.
var (
	usualCosts = kernel.Costs{Switch: 3 * time.Microsecond, Call: time.Microsecond, Byte: .1}
	hostRate   = 1.25e9 / 10
	nodeRate   = 1.25e9
)

func newLarge(n int) *large {
	l := &large{n: n, k: kernel.New(1), alltoall: n <= mostAlltoall, bare: n > mostEngines}
	l.world = process.World{K: l.k, Dial: l.dial}
	for o := range n {
		l.counts, l.displs = append(l.counts, 8), append(l.displs, int64(8*o))
	}
	l.node = &kernel.Host{Name: "z", Cores: 1, Costs: usualCosts}
	return l
}

// mostAlltoall is for how many ranks an alltoall is tried: each has that many times 8 bytes, twice.
const mostAlltoall = 4096

// mostEngines is for how many ranks there are engines: each takes 90 kB and more.
const mostEngines = 12_000

// dial gives each rank an adapter of its own.
func (l *large) dial(ctx context.Context, p *kernel.Process, addr string) (*kernel.End, error) {
	way := func(a, b *kernel.Line) *kernel.Way {
		return &kernel.Way{Lines: []kernel.Passage{{Line: a, Key: p.Name}, {Line: b, Key: p.Name}},
			Delay: 20 * time.Microsecond, Packet: 64 << 10, Unsent: 128 << 10, Window: 4 << 20}
	}
	out, in := l.k.Line(p.Name+".out", hostRate, 0), l.k.Line(p.Name+".in", hostRate, 0)
	return p.Dial(ctx, addr, kernel.Path{Out: way(out, l.in), In: way(l.zipOut, in)})
}

func (l *large) run() error {
	l.in, l.zipOut = l.k.Line("z.in", nodeRate, 0), l.k.Line("z.out", nodeRate, 0)
	l.zip = l.world.NewForwarder("z", l.node, forwarder.Config{Memory: 4 << 30, MaxRanks: 1 << 17, MaxUnjoined: 1 << 17,
		MaxUnjoinedFrom: 1 << 17, MaxLinksFrom: 1 << 17})
	job := jobenv.Job{ID: "large", Secret: "s", Timeout: time.Hour, Forwarders: []string{"z"},
		Layout: []jobenv.Cluster{{Name: "a", Size: l.n / 2}, {Name: "b", Size: l.n - l.n/2}}}
	clusters := process.Clusters(&job)
	l.comms = make([]*engine.Comm, l.n)
	for i, c := range job.Layout {
		board := new(process.Cluster)
		for local := range c.Size {
			rank := len(l.members)
			p := l.k.Process(fmt.Sprintf("rank%d", rank))
			p.On(&kernel.Host{Name: p.Name, Cores: 2, Costs: usualCosts})
			m := l.world.NewMember(rank, p, process.NewNative(board, local))
			l.members = append(l.members, m)
			e := process.Entry{Job: job, Local: local, Host: p.Name, Timeout: time.Hour, Patience: time.Minute,
				Silence: time.Minute, Bare: l.bare}
			e.Job.Cluster = job.Layout[i].Name
			p.Go(func() {
				if err := l.rank(m, &e, clusters); err != nil && l.err == nil {
					l.err = fmt.Errorf("rank %d: %w", rank, err)
				}
			})
		}
	}
	l.mark()
	l.k.Run(func() bool {
		return l.err != nil || l.phase == len(phases) || l.bare && l.phase == 1 || l.k.Now() > time.Hour
	})
	if l.err == nil && l.phase < len(phases) && !(l.bare && l.phase == 1) {
		l.err = fmt.Errorf("%s of %d ranks is not over: %d are through", phases[l.phase], l.n, l.through)
	}
	for _, m := range l.members {
		m.Proc.Kill()
		if m.Engine != nil {
			m.Engine.Discard()
		}
	}
	l.zip.Proc.Kill()
	return l.err
}

// rank is what each does.
func (l *large) rank(m *process.Member, e *process.Entry, clusters []wire.Cluster) error {
	if err := m.Enter(e, clusters); err != nil {
		return err
	}
	var err error
	if !l.bare {
		if l.comms[m.Rank], err = m.Comm(); err != nil {
			return err
		}
	}
	for {
		phase := l.phase
		if l.through++; l.through == l.n { // the last one: the next phase begins for all at once
			l.mark()
			l.through = 0
			l.phase++
			for _, g := range l.gates {
				l.k.Signal(g)
			}
			l.gates = nil
		}
		if l.phase == phase {
			gate, _ := l.k.Event()
			l.gates = append(l.gates, gate)
			m.System.Poll([]unix.PollFd{{Fd: int32(gate), Events: unix.POLLIN}}, time.Hour, false)
			l.k.Close(gate)
		}
		switch {
		case l.bare || l.phase >= len(phases):
			return nil
		case phases[l.phase] == "finalize":
			err = m.Engine.Finish()
		case phases[l.phase] == "barrier":
			err = l.collect(m, collectives.Args{Op: collectives.OpBarrier}, nil)
		case phases[l.phase] == "allreduce":
			sum := make([]byte, 8)
			err = l.collect(m, collectives.Args{Op: collectives.OpAllreduce, Send: []byte{1, 0, 0, 0, 0, 0, 0, 0},
				Recv: sum, Uniform: true, Count: 8, Extent: 1, Commutative: true}, func() bool { return sum[0] == byte(l.n) })
		case l.alltoall:
			err = l.everybody(m)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", phases[l.phase], err)
		}
	}
}

// everybody is an alltoall: each rank sends each other one both numbers.
func (l *large) everybody(m *process.Member) error {
	a := collectives.Args{Op: collectives.OpAlltoallv, Send: make([]byte, 8*l.n), Recv: make([]byte, 8*l.n),
		SendCounts: l.counts, SendDispls: l.displs, RecvCounts: l.counts, RecvDispls: l.displs,
		Uniform: true, Count: 8, Extent: 1}
	for o := range l.n {
		binary.LittleEndian.PutUint32(a.Send[8*o:], uint32(m.Rank))
		binary.LittleEndian.PutUint32(a.Send[8*o+4:], uint32(o))
	}
	return l.collect(m, a, func() bool {
		for o := range l.n {
			if binary.LittleEndian.Uint32(a.Recv[8*o:]) != uint32(o) ||
				binary.LittleEndian.Uint32(a.Recv[8*o+4:]) != uint32(m.Rank) {
				return false
			}
		}
		return true
	})
}

func (l *large) collect(m *process.Member, a collectives.Args, right func() bool) error {
	var cell engine.Cell
	if err := m.Engine.Collective(l.comms[m.Rank], engine.Coll{Args: a, Type: 7, Operator: 8}, &cell); err != nil {
		return err
	}
	for !cell.Done() {
		m.Engine.Progress(time.Millisecond)
	}
	if cell.Err() == nil && right != nil && !right() {
		return fmt.Errorf("a wrong result")
	}
	return cell.Err()
}

// mark notes how things stand.
func (l *large) mark() {
	var s runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&s)
	l.marks = append(l.marks, mark{l.k.Now(), l.node.Used, time.Since(started), l.in.Bytes, l.zipOut.Bytes, s.HeapAlloc})
}

var started = time.Now()

// String is a line for each phase.
func (l *large) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d ranks, %d events\n%-10s %12s %12s %12s %12s %10s %10s\n", l.n, l.k.Steps(), "", "virtual", "forwarder",
		"to it", "from it", "here", "heap")
	for i, p := range phases[:len(l.marks)-1] {
		x, y := l.marks[i], l.marks[i+1]
		fmt.Fprintf(&b, "%-10s %12v %12v %10d B %10d B %10v %6.0f MB\n", p, (y.at - x.at).Round(time.Microsecond),
			(y.used - x.used).Round(time.Microsecond), y.sent-x.sent, y.got-x.got, (y.wall - x.wall).Round(time.Millisecond),
			float64(y.heap)/1e6)
	}
	return b.String()
}
