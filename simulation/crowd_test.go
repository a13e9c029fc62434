package simulation

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"os"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/leidenzipper/zipper/forwarder"
	"github.com/leidenzipper/zipper/internal/jobenv"
	"github.com/leidenzipper/zipper/internal/wire"
	"github.com/leidenzipper/zipper/mmpi/engine"
	"github.com/leidenzipper/zipper/mmpi/engine/link/demand"
	"github.com/leidenzipper/zipper/simulation/kernel"
	"github.com/leidenzipper/zipper/simulation/process"
)

// Limits that a crowd must keep.
const (
	crowdDoors  = 256       // ports of a job: maxDoors of forwarder/job
	crowdMemory = 256 << 20 // memory of the forwarder in bytes
	crowdPhase  = 2 * time.Minute
)

// crowd is a job of two clusters over one forwarder whose kernel forwards connections. In each
// phase every rank of the first cluster has a random partner in the other one, and some ranks of
// both clusters, the hubs, have more partners than a rank may have direct links. Partners play
// ping-pong until each pair has a direct link, or an end that has as many as it may have. Faults of
// the phase happen meanwhile.
type crowd struct {
	half    int // number of ranks of each cluster
	hubs    int // number of ranks of each cluster with many partners
	many    int // number of partners of such a rank
	phases  []phaseFaults
	k       *kernel.Kernel
	world   process.World
	zip     *process.Forwarder
	members []*process.Member
	comms   []*engine.Comm
	ends    []*kernel.End // dialling ends of all connections

	phase    int     // current phase; -1: ranks join
	pairs    [][]int // partners of each rank in the current phase
	over     bool    // the ping-pongs of the phase end
	begun    time.Duration
	calm     time.Duration // virtual time after which the phase has no faults
	through  int           // number of ranks that have finished the current phase
	gates    []int         // events on which ranks wait for the next phase
	messages int           // number of messages that were received
	most     int           // largest number of direct links of a rank
	killed   int           // rank that a fault has killed; -1: none
	err      error         // first violation; nil if there is none
	report   strings.Builder
}

// phaseFaults injects the faults of a phase, and returns the time after which there are none.
type phaseFaults func(c *crowd) (calm time.Duration)

func newCrowd(seed uint64, half, hubs, many int, phases ...phaseFaults) *crowd {
	c := &crowd{half: half, hubs: hubs, many: many, phases: phases, phase: -1, killed: -1, k: kernel.New(seed),
		comms: make([]*engine.Comm, 2*half)}
	c.world = process.World{K: c.k, NAT: true, Together: time.Second,
		Dial: func(ctx context.Context, p *kernel.Process, addr string) (*kernel.End, error) {
			e, err := p.Dial(ctx, addr, kernel.Path{Delay: 50 * time.Microsecond, Jitter: 50 * time.Microsecond,
				Buffer: 256 << 10})
			if err == nil {
				c.ends = append(c.ends, e)
			}
			return e, err
		}}
	c.zip = c.world.NewForwarder("z", nil, forwarder.Config{Memory: crowdMemory, MaxRanks: 1 << 16,
		MaxUnjoined: 1 << 16, MaxUnjoinedFrom: 1 << 16, MaxLinksFrom: 1 << 16})
	return c
}

// run runs the job, and returns the first violation.
func (c *crowd) run() error {
	job := jobenv.Job{ID: "crowd", Secret: "s", Timeout: time.Hour, Forwarders: []string{"z"},
		Layout: []jobenv.Cluster{{Name: "a", Size: c.half}, {Name: "b", Size: c.half}}}
	clusters := process.Clusters(&job)
	ended := 0
	for i, layout := range job.Layout {
		board := new(process.Cluster)
		for local := range layout.Size {
			p := c.k.Process(fmt.Sprintf("rank%d", len(c.members)))
			p.Address = netip.AddrFrom4([4]byte{10, byte(1 + i), byte(local / 4 / 256), byte(local / 4)})
			m := c.world.NewMember(len(c.members), p, process.NewNative(board, local))
			c.members = append(c.members, m)
			e := process.Entry{Job: job, Local: local, Host: p.Address.String(), Timeout: time.Hour,
				Patience: time.Minute, Silence: 5 * time.Second,
				Limits: engine.Limits{DirectAfter: 32 << 10}}
			e.Job.Cluster = layout.Name
			p.Go(func() {
				err := c.rank(m, &e, clusters)
				if err == nil {
					err = m.Engine.Finish()
				}
				c.judge(m, err)
				if ended++; err != nil {
					p.Kill() // as its cluster's launcher does
				}
			})
		}
	}
	c.watch()
	all := func() bool { return ended == len(c.members) || c.killed >= 0 && ended == len(c.members)-1 }
	c.k.Run(func() bool { return c.err != nil || all() || c.k.Stuck() != "" })
	if c.err == nil && !all() {
		c.err = fmt.Errorf("%d of %d ranks have ended (%s polls without end)", ended, len(c.members), c.k.Stuck())
	}
	for _, m := range c.members {
		m.Proc.Kill()
		if m.Engine != nil {
			m.Engine.Discard()
		}
	}
	last := c.k.Now() + time.Minute
	c.k.Run(func() bool { return c.k.Now() > last || c.k.Steps()%1024 == 0 && c.leftovers() == nil })
	if err := c.leftovers(); err != nil && c.err == nil {
		c.err = err
	}
	c.zip.Kill()
	return c.err
}

// judge records a violation if a rank has ended with an error err that it must not have, or without
// the reason for which the job must end.
func (c *crowd) judge(m *process.Member, err error) {
	switch {
	case c.err != nil:
	case c.killed < 0 && err != nil:
		c.err = fmt.Errorf("rank %d: %w (%w)", m.Rank, err, m.Native.Failure())
	case c.killed >= 0 && err == nil:
		c.err = fmt.Errorf("rank %d ends without an error", m.Rank)
	case c.killed >= 0 && !strings.Contains(fmt.Sprint(err, m.Native.Failure()), fmt.Sprintf("rank %d", c.killed)):
		c.err = fmt.Errorf("rank %d ends with an error that does not name rank %d: %w (%w)", m.Rank, c.killed, err,
			m.Native.Failure())
	}
}

// leftovers returns an error if the forwarder keeps anything of the job.
func (c *crowd) leftovers() error {
	s := c.zip.Status()
	if len(s.Jobs) > 0 || s.Links > 0 || s.Memory.Used != 0 || c.zip.NAT.Open() > 0 {
		return fmt.Errorf("the forwarder keeps %d jobs, %d links, %d bytes and %d ports", len(s.Jobs), s.Links, s.Memory.Used,
			c.zip.NAT.Open())
	}
	return nil
}

// rank joins and takes part in all phases.
func (c *crowd) rank(m *process.Member, e *process.Entry, clusters []wire.Cluster) error {
	c.k.Sleep(time.Duration(c.k.Rand.IntN(100_000_000)))
	if err := m.Enter(e, clusters); err != nil {
		return err
	}
	var err error
	if c.comms[m.Rank], err = m.Comm(); err != nil {
		return err
	}
	for c.next(m) {
		played := c.pong
		if m.Rank < c.half {
			played = c.ping
		}
		if err := played(m, c.pairs[m.Rank]); err != nil {
			return fmt.Errorf("phase %d: %w", c.phase, err)
		}
	}
	return nil
}

// next waits until all ranks have finished the current phase, or the job has failed, and reports
// whether there is another one.
func (c *crowd) next(m *process.Member) bool {
	phase := c.phase
	if c.through++; c.through == len(c.members) {
		c.through = 0
		c.begin()
		for _, g := range c.gates {
			c.k.Signal(g)
		}
		c.gates = nil
	}
	if c.phase == phase {
		gate, _ := c.k.Event() // it never fails here
		c.gates = append(c.gates, gate)
		for c.phase == phase && m.Native.Failure() == nil {
			m.System.Poll([]unix.PollFd{{Fd: int32(gate), Events: unix.POLLIN}}, time.Second, false)
		}
		c.k.Close(gate)
	}
	return c.phase < len(c.phases) && c.phase != phase
}

// begin begins the next phase: it draws the partners, and injects the faults.
func (c *crowd) begin() {
	c.phase++
	c.over, c.begun, c.calm = false, c.k.Now(), c.k.Now()
	if c.phase == len(c.phases) {
		return
	}
	r := rand.New(rand.NewPCG(uint64(c.phase), 0xc40d))
	paired := map[[2]int]bool{}
	c.pairs = make([][]int, 2*c.half)
	pair := func(a, b int) {
		if !paired[[2]int{a, b}] {
			paired[[2]int{a, b}] = true
			c.pairs[a], c.pairs[b] = append(c.pairs[a], b), append(c.pairs[b], a)
		}
	}
	for a := range c.half {
		pair(a, c.half+r.IntN(c.half))
	}
	for hub := range c.hubs {
		for _, o := range r.Perm(c.half)[:c.many] {
			pair(hub, c.half+o)
		}
		for _, o := range r.Perm(c.half)[:c.many] {
			pair(o, c.half+hub)
		}
	}
	if faults := c.phases[c.phase]; faults != nil {
		c.calm = faults(c)
	}
}

// message is an operation under way with a partner.
type message struct {
	cell engine.Cell
	buf  [16]byte // sender, number of the message, and whether it is the last one
}

func (m *message) set(from, number int, last bool) {
	binary.LittleEndian.PutUint32(m.buf[:], uint32(from))
	binary.LittleEndian.PutUint32(m.buf[4:], uint32(number))
	if last {
		m.buf[8] = 1
	}
}

// wrong returns an error if the message, which was received, has failed or is not the expected one.
func (m *message) wrong(from, number int) error {
	if err := m.cell.Err(); err != nil {
		return err
	}
	f, n := binary.LittleEndian.Uint32(m.buf[:]), binary.LittleEndian.Uint32(m.buf[4:])
	if int(m.cell.Bytes) != len(m.buf) || int(f) != from || int(n) != number {
		return wrongf("message %d of rank %d, want %d of rank %d", n, f, number, from)
	}
	return nil
}

func (c *crowd) send(m *process.Member, to int, s *message) error {
	return m.Engine.Isend(c.comms[m.Rank], engine.KindP2P, s.buf[:], to, c.phase, false, &s.cell)
}

func (c *crowd) receive(m *process.Member, from int, r *message) error {
	return m.Engine.Irecv(c.comms[m.Rank], engine.KindP2P, r.buf[:], from, c.phase, &r.cell)
}

// ping sends messages to all partners, and receives their answers, until the phase is over.
func (c *crowd) ping(m *process.Member, partners []int) error {
	for number, last := 0, false; !last; number++ {
		c.k.Sleep(time.Duration(200_000_000 + c.k.Rand.IntN(300_000_000)))
		last = c.over
		sent, got := make([]message, len(partners)), make([]message, len(partners))
		for i, o := range partners {
			sent[i].set(m.Rank, number, last)
			if err := errors.Join(c.receive(m, o, &got[i]), c.send(m, o, &sent[i])); err != nil {
				return err
			}
		}
		for i, o := range partners {
			for !sent[i].cell.Done() || !got[i].cell.Done() {
				m.Engine.Progress(100 * time.Millisecond)
			}
			if err := errors.Join(sent[i].cell.Err(), got[i].wrong(o, number)); err != nil {
				return err
			}
			c.messages++
		}
	}
	return nil
}

// pong answers the messages of all partners, until each has sent its last one.
func (c *crowd) pong(m *process.Member, partners []int) error {
	type game struct {
		got, sent *message
		number    int
	}
	games := make([]game, len(partners))
	left := len(partners)
	for i, o := range partners {
		games[i] = game{new(message), new(message), 0}
		if err := c.receive(m, o, games[i].got); err != nil {
			return err
		}
	}
	for left > 0 {
		m.Engine.Progress(100 * time.Millisecond)
		for i, o := range partners {
			g := &games[i]
			if g.got == nil || !g.got.cell.Done() {
				continue
			}
			if err := errors.Join(g.sent.cell.Err(), g.got.wrong(o, g.number)); err != nil {
				return err
			}
			c.messages++
			last := g.got.buf[8] == 1
			g.sent, g.got = new(message), nil
			g.sent.set(m.Rank, g.number, last)
			if err := c.send(m, o, g.sent); err != nil {
				return err
			}
			if g.number++; last {
				left--
				continue
			}
			g.got = new(message)
			if err := c.receive(m, o, g.got); err != nil {
				return err
			}
		}
	}
	for i := range games {
		for !games[i].sent.cell.Done() {
			m.Engine.Progress(100 * time.Millisecond)
		}
	}
	return nil
}

// watch checks the limits every 200 ms, and ends the phase when all pairs have what they need.
func (c *crowd) watch() {
	links := make([]map[int]bool, len(c.members))
	for i, m := range c.members {
		links[i] = map[int]bool{}
		if m.Engine == nil || m.Proc.Dead() {
			continue
		}
		for _, r := range m.Engine.Rails() {
			if r.Peer >= 0 && r.Up {
				links[i][r.Peer] = true
			}
		}
		c.most = max(c.most, len(links[i]))
		if len(links[i]) > demand.MaxLinks {
			c.fail("rank %d has %d direct links", i, len(links[i]))
		}
	}
	if n := c.zip.NAT.Most; n > crowdDoors {
		c.fail("%d ports were open at a time", n)
	}
	if !c.zip.Proc.Dead() {
		if n := c.zip.Status().Memory.Used; n > crowdMemory {
			c.fail("the forwarder uses %d bytes", n)
		}
	}
	if c.phase >= 0 && c.phase < len(c.phases) && !c.over && c.k.Now() >= c.calm {
		missing, direct := 0, 0
		for a := range c.half {
			for _, b := range c.pairs[a] {
				switch {
				case links[a][b] && links[b][a]:
					direct++
				case len(links[a]) < demand.MaxLinks && len(links[b]) < demand.MaxLinks:
					missing++
				}
			}
		}
		switch now := c.k.Now(); {
		case missing == 0:
			c.over = true
			fmt.Fprintf(&c.report, "phase %d: %d pairs direct %v after the last fault; at most %d ports and %d links a rank so far\n",
				c.phase, direct, (now - c.calm).Round(time.Millisecond), c.zip.NAT.Most, c.most)
		case now-c.calm > crowdPhase:
			c.fail("%d pairs without a direct link, %d with one", missing, direct)
		}
	}
	c.k.After(200*time.Millisecond, c.watch)
}

func (c *crowd) fail(format string, args ...any) {
	if c.err == nil {
		c.err = fmt.Errorf("phase %d, after %v: %s", c.phase, c.k.Now()-c.begun, fmt.Sprintf(format, args...))
	}
}

// at injects a fault after the phase has lasted for d.
func (c *crowd) at(d time.Duration, fault func()) time.Duration {
	c.k.After(d, fault)
	return c.k.Now() + d
}

// flushes makes the kernel lose its table twice, once without an error for the ends of its
// connections.
func flushes(c *crowd) time.Duration {
	c.at(3*time.Second, func() { c.zip.NAT.Lose(time.Second, false) })
	return c.at(8*time.Second, func() { c.zip.NAT.Lose(0, true) })
}

// restarts kills the forwarder, and starts it again.
func restarts(c *crowd) time.Duration {
	c.at(4*time.Second, c.zip.Kill)
	return c.at(4300*time.Millisecond, c.zip.Start)
}

// cuts breaks connections at random times.
func cuts(c *crowd) (calm time.Duration) {
	for i := range 200 {
		calm = c.at(2*time.Second+time.Duration(i)*20*time.Millisecond, func() {
			e := c.ends[c.k.Rand.IntN(len(c.ends))]
			e.Cut(time.Duration(c.k.Rand.IntN(5_000_000)), time.Duration(c.k.Rand.IntN(5_000_000)))
		})
	}
	return calm
}

// kills kills a rank that has direct links.
func kills(c *crowd) time.Duration {
	c.at(2*time.Second, func() {
		c.killed = 7
		c.members[c.killed].Proc.Kill()
	})
	return c.k.Now() + time.Hour // the ranks go on until the job ends
}

// TestThousandRanks runs a job of 1000 ranks with random partners, which change. All messages must
// arrive while the kernel loses its table, the forwarder is killed, and connections break. All
// pairs must get direct links again afterwards, as far as the limit of links of a rank permits, and
// no limit may be exceeded. Under the race detector there are 140 ranks, and
// two phases.
func TestThousandRanks(t *testing.T) {
	phases := []phaseFaults{nil, flushes, restarts, cuts}
	if os.Getenv("ZIPPER_LONG") != "" {
		for range 4 {
			phases = append(phases, phases[:4]...)
		}
	}
	begun := time.Now()
	half, hubs, many := 500, 2, 150
	if underRace {
		half, hubs, many, phases = 70, 1, 66, phases[1:3]
	}
	c := newCrowd(1, half, hubs, many, phases...)
	if err := c.run(); err != nil {
		t.Error(err)
	}
	if c.most != demand.MaxLinks {
		t.Errorf("at most %d links of a rank: the limit was not reached", c.most)
	}
	t.Logf("%s%d messages, %d connections, %v of virtual time in %v, %d events", c.report.String(), c.messages,
		c.zip.NAT.Made, c.k.Now(), time.Since(begun), c.k.Steps())
}

// TestRankOfCrowdIsKilled checks that a job with direct links ends at all ranks with the reason
// when a rank is killed under traffic, and that the forwarder keeps nothing of it.
func TestRankOfCrowdIsKilled(t *testing.T) {
	c := newCrowd(1, 60, 1, 50, nil, kills)
	if err := c.run(); err != nil {
		t.Error(err)
	}
	if c.killed < 0 {
		t.Error("no rank was killed")
	}
}
