package ports

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/leidenzipper/zipper/handshake"
	"github.com/leidenzipper/zipper/internal/dial"
	"github.com/leidenzipper/zipper/internal/facts"
	"github.com/leidenzipper/zipper/internal/jobenv"
	"github.com/leidenzipper/zipper/mmpi/boot"
)

// self returns rank `rank` of a job of clusters a=2,b=2.
func self(id, cluster string, rank int, forwarders ...string) *Self {
	return &Self{Rank: rank, Local: boot.Local{}, Job: jobenv.Job{ID: id, Secret: "s", Cluster: cluster,
		Forwarders: forwarders,
		Layout:     []jobenv.Cluster{{Name: "a", Size: 2}, {Name: "b", Size: 2}}}}
}

func zipper(t *testing.T, s string) jobenv.Zipper {
	t.Helper()
	_, z, err := jobenv.ParseZipper(s)
	if err != nil {
		t.Fatal(err)
	}
	return z
}

// TestSeat checks that both sides make the same job from a plan, and that every process has its own
// place in it.
func TestSeat(t *testing.T) {
	for name, edit := range map[string]func(acc, con *Self, p *Plan){
		"one forwarder": func(*Self, *Self, *Plan) {},
		"apart": func(_, con *Self, p *Plan) {
			con.Job.Forwarders = []string{"y:1"}
			p.Apart = true
		},
		"several hops": func(acc, con *Self, _ *Plan) {
			for _, s := range []*Self{acc, con} {
				s.Job.WithZippers([]jobenv.Zipper{zipper(t, "a@x:1+w@x:2"), zipper(t, "b@y:1+w")})
				s.Job.Networks = []string{"w"}
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			var layout []jobenv.Cluster
			places := map[string]bool{}
			acc, con := self("one", "a", 0, "x:1"), self("two", "a", 1, "x:1")
			p := &Plan{ID: handshake.ConnectionID("one", "1")}
			edit(acc, con, p)
			p.Accept, p.Dial = acc.side([]int32{2, 0, 1}), con.side([]int32{1, 3})
			p, err := ParsePlan(p.Bytes())
			if err != nil {
				t.Fatal(err)
			}
			for i, q := range p.Processes() {
				me := *map[bool]*Self{true: acc, false: con}[i < 3]
				me.Rank = int(q.Rank)
				me.Job.Cluster = []string{"a", "b"}[q.Rank/2]
				seat, err := p.Seat(&me, i < 3)
				if err != nil {
					t.Fatal(err)
				}
				if layout == nil {
					layout = seat.Job.Layout
				}
				if !slices.Equal(layout, seat.Job.Layout) {
					t.Errorf("%v and %v", layout, seat.Job.Layout)
				}
				var first int32
				for _, c := range layout {
					if c.Name == seat.Job.Cluster {
						break
					}
					first += int32(c.Size)
				}
				if got := first + int32(seat.Native); got != seat.Ranks[i] {
					t.Errorf("process %d has virtual rank %d, its seat says %d", i, seat.Ranks[i], got)
				}
				places[seat.Job.Cluster+string(rune('0'+seat.Native))] = true
				targets, _, err := dial.Targets(seat.Job, handshake.Identity{Job: seat.Job.ID})
				if err != nil || len(targets) != 1 {
					t.Errorf("process %d joins %v: %v", i, targets, err)
				}
			}
			if len(places) != 5 || len(layout) != 4 {
				t.Errorf("%v in %v", places, layout)
			}
		})
	}
}

// TestPlanHostile checks that invalid descriptions of another job are refused.
func TestPlanHostile(t *testing.T) {
	s := self("one", "a", 0, "x:1")
	for name, edit := range map[string]func(*Side){
		"rank":   func(s *Side) { s.Members = []int32{4} },
		"twice":  func(s *Side) { s.Members = []int32{1, 1} },
		"nobody": func(s *Side) { s.Members = nil },
		"below":  func(s *Side) { s.Members = []int32{-1} },
		"size":   func(s *Side) { s.Layout = []jobenv.Cluster{{Name: "a", Size: 1 << 30}} },
		"keys":   func(s *Side) { s.HostKeys = nil },
	} {
		p := Plan{ID: "one#c1", Accept: s.side([]int32{0}), Dial: s.side([]int32{1})}
		edit(&p.Dial)
		if _, err := ParsePlan(p.Bytes()); err == nil {
			t.Errorf("%s: believed", name)
		}
	}
}

func TestPortName(t *testing.T) {
	p := self("job", "a", 0, "10.0.0.1:7475", "10.0.0.2:7475").Open()
	if got, err := Parse(p.String()); err != nil || got.String() != p.String() || len(p.String()) > 200 {
		t.Errorf("%q: %v", p, err)
	}
	for _, bad := range []string{"", "zipper", "zipper|job|checked|1|x:1", "x|" + p.ID + "|checked|1|x:1", "zipper|" +
		p.ID + "|checked|1|"} {
		if _, err := Parse(bad); err == nil {
			t.Errorf("%q is taken for a port", bad)
		}
	}
}

// TestAcross checks that both ends find the same paths over several forwarders, and that these are
// trees.
func TestAcross(t *testing.T) {
	for name, zippers := range map[string][]string{
		"chain": {"a@x:1+b@x:2", "b@y:1+c@y:2"},
		"wan":   {"a@x:1+w@x:2", "c@y:1+w"},
		"rows":  {"a@x:1+b@x:2", "a@z:1+b@z:2", "b@y:1+c@y:2"},
	} {
		job := func(id, cluster string) *Self {
			s := self(id, cluster, 0)
			s.Job.Layout = []jobenv.Cluster{{Name: "a", Size: 1}, {Name: "b", Size: 1}, {Name: "c", Size: 1}}
			if name == "wan" {
				s.Job.Layout, s.Job.Networks = []jobenv.Cluster{{Name: "a", Size: 1}, {Name: "c", Size: 1}},
					[]string{"w"}
			}
			var list []jobenv.Zipper
			for _, z := range zippers {
				list = append(list, zipper(t, z))
			}
			s.Job.WithZippers(list)
			return s
		}
		acc, con := job("one", "a"), job("two", "c")
		port := acc.Open()
		waits, err := acc.doors(port.ID, port.Level, acceptor, -1)
		if err != nil || len(waits) != 2 {
			t.Fatalf("%s: %v %v", name, waits, err)
		}
		comes, err := con.doors(port.ID, port.Level, dialler, con.at(port.Addresses[0]))
		if err != nil || len(comes) != 1 {
			t.Fatalf("%s: %v %v", name, comes, err)
		}
		met := 0
		for _, w := range waits {
			targets, _, err := dial.Targets(w.job, handshake.Identity{Job: w.job.ID})
			if err != nil || len(targets) != 1 {
				t.Errorf("%s: %v %v", name, targets, err)
			}
			if w.job.ID == comes[0].job.ID {
				met++
				same := slices.EqualFunc(w.job.Zippers, comes[0].job.Zippers, func(x, y jobenv.Zipper) bool { return x.String() == y.String() })
				if !same || !slices.Equal(w.job.Networks, comes[0].job.Networks) {
					t.Errorf("%s: %v, %v", name, w.job, comes[0].job)
				}
			}
		}
		if met != 1 {
			t.Errorf("%s: they meet at %d doors", name, met)
		}
	}
}

// TestJobsOfDifferentFormatsAreNotConnected checks that a connection between jobs needs one format
// of long double, or jobs that convert long doubles already.
func TestJobsOfDifferentFormatsAreNotConnected(t *testing.T) {
	const x86, arm, other = facts.Word(0x01423321), facts.Word(0x02423321), facts.Word(0x01423322)
	for _, c := range []struct {
		a, b           facts.Word
		aMixed, bMixed bool
		want           string // a part of the error; empty for none
	}{
		{x86, x86, false, false, ""},
		{x86, arm, true, true, ""},
		{0, arm, false, false, ""}, // a release that does not know facts
		{x86, arm, false, false, "formats of long double differ"},
		{x86, x86, true, false, "formats of long double differ"},
		{x86, other, false, false, "byte orders differ"},
	} {
		acc, con := self("one", "a", 0, "x:1"), self("two", "a", 0, "x:1")
		acc.Local.Facts, acc.Mixed, con.Local.Facts, con.Mixed = c.a, c.aMixed, c.b, c.bMixed
		p := &Plan{ID: handshake.ConnectionID("one", "1"), Accept: acc.side([]int32{0}), Dial: con.side([]int32{1})}
		_, err := ParsePlan(p.Bytes())
		if got := fmt.Sprint(err); (err == nil) != (c.want == "") || !strings.Contains(got, c.want) {
			t.Errorf("%v and %v: %v, want %q", c.a, c.b, err, c.want)
		}
	}
}
