package job

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/leidenzipper/zipper/forwarder/action"
	"github.com/leidenzipper/zipper/internal/wire"
)

// manyRanks is a running job of ranks in two clusters, several on each host, in which the kernel
// answers when the test lets it.
type manyRanks struct {
	*shell
	t     *testing.T
	ports uint16
	ways  map[action.Conn][]wire.Way // the Ways that each rank was sent
}

// newManyRanks returns a job of a cluster of a ranks and one of b.
func newManyRanks(t *testing.T, a, b int) *manyRanks {
	layout := []wire.Cluster{{Name: "a", Size: uint32(a)}, {Name: "b", Size: uint32(b)}}
	m := &manyRanks{t: t, ways: map[action.Conn][]wire.Way{}}
	for v := range a + b {
		c, native := 0, v
		if v >= a {
			c, native = 1, v-a
		}
		j := &wire.Join{Version: wire.Version, TimeoutMS: 20000, Job: "j", Cluster: layout[c].Name, Rank: uint32(native),
			Layout: layout, Rails: 1, Instance: uint64(v) + 1, TagUB: 1 << 20}
		if v == 0 {
			s, refused := newShell(time.Unix(1e9, 0), Config{Timeout: time.Hour, Notice: time.Minute, Ways: true}, j)
			if refused != nil {
				t.Fatal(refused)
			}
			m.shell = s
			s.sent = m.record
		}
		conn := action.Conn(v + 1)
		m.ends[conn] = &end{rank: -1, zipper: -1}
		m.booked++
		host := netip.AddrFrom4([4]byte{10, byte(c), byte(native / 64), 1})
		m.handle(Joined{Conn: conn, Link: "link", Join: j, Timeout: time.Hour, Bytes: 1, Room: true,
			Inside: netip.AddrPortFrom(host, uint16(5000+native%64)), From: host,
			Home: netip.AddrFrom4([4]byte{10, byte(c), 255, 254})})
	}
	if m.job.State() != Running {
		t.Fatalf("the job is %v", m.job.State())
	}
	return m
}

// record records a Way that a rank is sent.
func (m *manyRanks) record(c action.Conn, frame []byte) {
	if h, err := wire.ParseHeader(frame); err != nil || h.Type != wire.TypeWay {
		return
	}
	w, err := wire.ParseWay(frame[wire.HeaderLen:])
	if err != nil {
		m.t.Fatal(err)
	}
	m.ways[c] = append(m.ways[c], w)
}

// ask lets rank v ask for a way to rank w.
func (m *manyRanks) ask(v, w int) { m.handle(Asked{Conn: action.Conn(v + 1), Rank: uint32(w)}) }

// answer lets the kernel answer, with an error or with ports of its own choice. With an error it
// opens only the ways to the addresses in but.
func (m *manyRanks) answer(err error, but ...netip.AddrPort) {
	ways := m.asked
	m.asked = nil
	var at []netip.AddrPort
	for _, w := range ways {
		at = append(at, netip.AddrPort{})
		if err == nil || slices.Contains(but, w.To) {
			m.ports++
			at[len(at)-1] = netip.AddrPortFrom(w.At, m.ports)
			m.open[at[len(at)-1]] = true
		}
	}
	m.handle(Opened{At: at, Err: err})
}

// pass lets a time pass, with the timer that is due then.
func (m *manyRanks) pass(d time.Duration) {
	m.now = m.now.Add(d)
	if t := (action.Timer{Kind: action.Doors}); m.timers[t] {
		m.expire(t)
	}
}

// check fails the test if the job has asked for something forbidden.
func (m *manyRanks) check() {
	m.t.Helper()
	if len(m.faults) > 0 {
		m.t.Fatal(m.faults)
	}
}

// TestThousandRanksStayWithinPorts lets a thousand ranks with random partners ask, more than
// maxDoors of them before the kernel's first answer. It checks that each request is met, by a door
// that stays open for as long as a rank tries to connect, and that maxDoors ports are open at most.
func TestThousandRanksStayWithinPorts(t *testing.T) {
	const connecting = 2 * time.Second
	m := newManyRanks(t, 500, 500)
	r := rand.New(rand.NewPCG(1, 2))
	most := 0
	for round := range 8 {
		asked := map[[2]int]bool{}
		for range 600 {
			pair := [2]int{r.IntN(500), 500 + r.IntN(500)}
			asked[pair] = true
			m.ask(pair[r.IntN(2)], pair[r.IntN(2)]) // of a rank for itself at times, which has no effect
			m.ask(pair[0], pair[1])
		}
		until := map[string]time.Time{} // the time until which a door must stay open
		for begun := m.now; m.now.Sub(begun) < 4*doorTime; m.pass(200 * time.Millisecond) {
			for m.asked != nil {
				m.answer(nil)
			}
			most = max(most, len(m.open))
			for v, list := range m.ways {
				for _, w := range list {
					until[w.Address] = m.now.Add(connecting)
					if w.Instance == uint64(w.Rank)+1 {
						delete(asked, [2]int{int(w.Rank), int(v) - 1})
					}
				}
			}
			clear(m.ways)
			for at, end := range until {
				if m.now.Before(end) && !m.open[netip.MustParseAddrPort(at)] {
					t.Fatalf("round %d: door %s is closed %v too early", round, at, end.Sub(m.now))
				}
			}
			m.check()
		}
		if len(asked) > 0 {
			t.Fatalf("round %d: %d pairs get no way", round, len(asked))
		}
	}
	if most != maxDoors {
		t.Errorf("%d doors at most, want the limit %d to be reached", most, maxDoors)
	}
	for range 3 {
		m.pass(doorTime)
	}
	m.check()
	if len(m.open) > 0 {
		t.Errorf("%d doors are open after the last use", len(m.open))
	}
}

// TestWayThatFailsFailsAlone checks that ranks get those ways of a request that the kernel can
// open.
func TestWayThatFailsFailsAlone(t *testing.T) {
	m := newManyRanks(t, 3, 1)
	m.ask(0, 3)
	m.ask(1, 3) // This request and the next one wait for the first answer.
	m.ask(2, 3)
	m.answer(nil)
	m.answer(errors.New("the other one"), m.asked[0].To)
	m.check()
	var to []uint32
	for _, w := range m.ways[4] {
		to = append(to, w.Rank)
	}
	if !slices.Equal(to, []uint32{0, 1}) || m.job.State() != Running || m.asked != nil {
		t.Errorf("the job is %v, and rank 3 gets ways to the ranks %v", m.job.State(), to)
	}
}

// TestKernelErrorKeepsJob checks that a job goes on, and asks again, when the kernel refuses.
func TestKernelErrorKeepsJob(t *testing.T) {
	m := newManyRanks(t, 1, 1)
	for range 3 {
		m.ask(0, 1)
		m.answer(errors.New("no"))
	}
	m.ask(1, 0)
	m.answer(nil)
	m.check()
	if got := fmt.Sprint(m.ways[2]); m.job.State() != Running || len(m.ways[2]) != 1 || len(m.ways[1]) != 0 {
		t.Errorf("the job is %v, with ways %s", m.job.State(), got)
	}
}

// TestUnusedWaysAreReportedOnce checks that an administrator is told once that no rank can use the
// ports, unless a rank has reported traffic over one.
func TestUnusedWaysAreReportedOnce(t *testing.T) {
	for _, used := range []bool{false, true} {
		m := newManyRanks(t, 1, 1)
		logged := 0
		for range 3 * unusedTime / time.Second {
			m.ask(0, 1)
			if m.asked != nil {
				m.answer(nil)
			}
			if used {
				m.handle(Moved{Conn: 1, Sent: wire.Moved{Messages: 1}})
			}
			before := m.job.View().Unused
			m.pass(time.Second)
			if v := m.job.View(); v.Unused && !before {
				logged++
			}
		}
		m.check()
		if want := map[bool]int{false: 1}[used]; logged != want {
			t.Errorf("used %v: reported %d times, want %d", used, logged, want)
		}
	}
}

// TestReportedTrafficIsBounded checks that ranks cannot report more than a network carries, and
// that sums do not wrap around.
func TestReportedTrafficIsBounded(t *testing.T) {
	m := newManyRanks(t, 2, 1)
	m.now = m.now.Add(time.Second)
	for c := range action.Conn(3) {
		m.handle(Moved{Conn: c + 1, Sent: wire.Moved{Messages: math.MaxUint64, Bytes: math.MaxUint64}})
	}
	if got := m.job.View().Moved; got != (wire.Moved{Messages: 3e9, Bytes: 3e11}) {
		t.Errorf("after a second three ranks have sent %+v", got)
	}
	most := wire.Moved{Messages: math.MaxUint64, Bytes: 5}
	if got := most.Plus(most); got != (wire.Moved{Messages: math.MaxUint64, Bytes: 10}) {
		t.Errorf("the sum is %+v", got)
	}
	m.check()
}
