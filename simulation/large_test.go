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

// largeVariable is the environment variable with the numbers of ranks for TestLarge, separated by
// commas.
const largeVariable = "ZIPPER_LARGE"

// TestLarge runs jobs of two clusters with many ranks and one forwarder. It logs the cost of
// gathering, a barrier, an allreduce and an alltoall of 8 bytes, and MPI_Finalize. Costs are
// virtual time on a usual network and processor, bytes, and time and memory of this process. The
// test checks every result.
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

// phases are the steps that all ranks take one after the other.
var phases = []string{"gather", "barrier", "allreduce", "alltoall", "finalize"}

// large is the state of one such job.
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
	through  int   // number of ranks that have finished the current phase
	gates    []int // events on which ranks wait for the next phase
	marks    []mark
	err      error
	alltoall bool
	counts   []int64 // block sizes of an alltoall, shared by all ranks
	displs   []int64 // block offsets of an alltoall, shared by all ranks
	bare     bool    // no engines: ranks only join
}

// mark is a measurement at the end of a phase.
type mark struct {
	at   time.Duration // virtual time
	used time.Duration // virtual processor time used by the forwarder
	wall time.Duration // real time since the start of this process
	sent int64         // bytes sent to the forwarder
	got  int64         // bytes sent by the forwarder
	heap uint64        // bytes of this process's heap that are in use
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

// mostAlltoall is the largest number of ranks with an alltoall. Each rank needs 16 bytes for each
// other one.
const mostAlltoall = 4096

// mostEngines is the largest number of ranks with engines. An engine takes at least 90 kB.
const mostEngines = 12_000

// dial opens a connection over an adapter that only this rank uses.
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
		l.err = fmt.Errorf("%s of %d ranks has not finished: %d ranks have", phases[l.phase], l.n, l.through)
	}
	for _, m := range l.members {
		m.Proc.Kill()
		if m.Engine != nil {
			m.Engine.Discard()
		}
	}
	l.zip.Kill()
	return l.err
}

// rank runs all phases of one rank. A rank waits after each phase until all ranks have finished it.
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
		if l.through++; l.through == l.n { // the last rank starts the next phase for all
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
			err = l.allRanks(m)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", phases[l.phase], err)
		}
	}
}

// allRanks runs an alltoall in which each block holds the ranks of its sender and receiver.
func (l *large) allRanks(m *process.Member) error {
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

// mark appends a measurement.
func (l *large) mark() {
	var s runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&s)
	l.marks = append(l.marks, mark{l.k.Now(), l.node.Used, time.Since(started), l.in.Bytes, l.zipOut.Bytes, s.HeapAlloc})
}

var started = time.Now()

// String returns a table with a line for each phase.
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
