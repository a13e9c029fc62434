package engine

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

var update = flag.Bool("update", false, "write the transcripts again")

// TestScripts runs the scripts testdata/*.txt: lines that begin with "> " are commands, and the
// others are their output. Commands:
//
//	world 2 2 [eager=N] [window=N] [data=N] [segment=N] [long=NANOSECONDS]   sizes of the clusters
//	comm RANK CONTEXT [r,r…]                     makes a communicator at one process (all ranks); "world" makes context 1 everywhere
//	send RANK NAME TO TAG SIZE [sync] [ctx=N]    Isend to another cluster
//	recv RANK NAME FROM TAG CAPACITY [ctx=N]     a receive as the shim does it: native if it can be; * is any
//	local RANK NAME TO TAG SIZE                  native send
//	probe RANK FROM TAG, mprobe RANK NAME FROM TAG, mrecv RANK NAME CAPACITY
//	cancel NAME
//	progress RANK, relay RANK [N], settle, tick RANK
//	drop RANK CONTEXT
//
// With "net" in place of "world" ranks have several rails (net_test.go):
//
//	net 2 2 [rails=N] [hops] [direct=A-B,…] [limits as of world]   hops: forwarders between neighbours of clusters in a row
//	lose RANK RAIL, back RANK RAIL         ends the link to a forwarder, opens it again
//	meet A B, part A B                     makes a direct link, ends it
//	cut A B, repair A B                    cuts the way between the forwarders of two ranks, repairs it
//	relay RANK RAIL [N], tick RANK MILLISECONDS
//	bye RANK                               ends the links as Finish does after its barrier
func TestScripts(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatal("no scripts", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			s := &script{t: t, ops: map[string]*op{}, messages: map[string]uint64{}}
			for _, line := range strings.Split(strings.TrimRight(string(want), "\n"), "\n") {
				switch {
				case strings.HasPrefix(line, "> "):
					s.printf("%s", line)
					s.do(strings.Fields(line[2:]))
					s.completed()
				case strings.HasPrefix(line, "#"), line == "":
					s.printf("%s", line)
				}
			}
			if *update {
				if err := os.WriteFile(file, []byte(s.out.String()), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			if got := s.out.String(); got != string(want) {
				t.Errorf("transcript differs; got:\n%s", got)
			}
		})
	}
}

type script struct {
	t        *testing.T
	f        *fabric
	n        *railNet // nil unless made by "net"
	ops      map[string]*op
	order    []string
	sends    []string // the names of the sends
	payload  []string // the contents of the sends
	messages map[string]uint64
	out      strings.Builder
	busy     []bool
}

type op struct {
	cell  *Cell
	rank  int
	buf   []byte
	recv  bool
	shown bool
	nat   *nativeRecv // a receive that went native at once
	comm  *Comm
}

func (s *script) printf(format string, args ...any) { fmt.Fprintf(&s.out, format+"\n", args...) }

func (s *script) num(w string) int {
	if w == "*" {
		return -1
	}
	n, err := strconv.Atoi(w)
	if err != nil {
		s.t.Fatalf("%q is not a number", w)
	}
	return n
}

func (s *script) do(w []string) {
	var plain []string
	opt := map[string]int{}
	var linked netOptions
	for _, x := range w[1:] {
		if k, v, ok := strings.Cut(x, "="); ok && k == "direct" {
			for _, pair := range strings.Split(v, ",") {
				a, b, _ := strings.Cut(pair, "-")
				linked.direct = append(linked.direct, [2]int{s.num(a), s.num(b)})
			}
		} else if ok {
			opt[k] = s.num(v)
		} else {
			plain = append(plain, x)
		}
	}
	if opt["ctx"] == 0 {
		opt["ctx"] = 1
	}
	comm := func(rank int) *Comm { return s.f.engines[rank].p2p.CommOf(uint64(opt["ctx"])) }
	p := plain
	limits := Limits{Eager: opt["eager"], EagerWindow: opt["window"], DataWindow: opt["data"], Segment: opt["segment"],
		Orphans: opt["orphans"], EagerPool: opt["pool"],
		LongPath: time.Duration(opt["long"])}
	if s.n != nil && s.doNet(w[0], p) {
		return
	}
	switch w[0] {
	case "net":
		var sizes []int
		for _, x := range p {
			if x == "hops" {
				linked.hops = true
			} else {
				sizes = append(sizes, s.num(x))
			}
		}
		linked.rails = opt["rails"]
		s.n = newRailNet(s.t, sizes, limits, linked, s.printf)
		s.f = &fabric{t: s.t, engines: s.n.engines, natives: s.n.natives}
		s.busy = make([]bool, len(s.f.engines))
		s.n.say()
	case "world":
		var sizes []int
		for _, x := range p {
			sizes = append(sizes, s.num(x))
		}
		s.f = newFabric(s.t, sizes, limits)
		s.f.log = s.printf
		s.f.world(1)
		s.busy = make([]bool, len(s.f.engines))
	case "comm":
		var ranks []int
		if len(p) > 2 {
			for _, x := range strings.Split(p[2], ",") {
				ranks = append(ranks, s.num(x))
			}
		}
		s.f.comm(s.num(p[0]), uint64(s.num(p[1])), ranks)
	case "drop":
		r := s.num(p[0])
		if err := s.f.engines[r].DropComm(s.f.engines[r].p2p.CommOf(uint64(s.num(p[1])))); err != nil {
			s.printf("  error: %v", err)
		}
	case "send":
		r := s.num(p[0])
		o := &op{cell: new(Cell), rank: r, buf: s.contents(p[1], s.num(p[4]))}
		s.start(p[1], o, s.f.engines[r].Isend(comm(r), KindP2P, o.buf, s.num(p[2]), s.num(p[3]), len(p) > 5 &&
			p[5] == "sync", o.cell))
	case "local":
		r := s.num(p[0])
		n := s.f.natives[r]
		n.send(uintptr(opt["ctx"]), s.num(p[2])-n.first, s.num(p[3]), s.contents(p[1], s.num(p[4])))
	case "recv":
		s.recv(s.num(p[0]), p[1], comm(s.num(p[0])), s.num(p[2]), s.num(p[3]), s.num(p[4]))
	case "probe":
		r := s.num(p[0])
		var c Cell
		if err := s.f.engines[r].Iprobe(comm(r), s.num(p[1]), s.num(p[2]), &c); err != nil {
			s.printf("  error: %v", err)
		}
		s.probed(&c)
	case "mprobe":
		r := s.num(p[0])
		var c Cell
		h, native, err := s.f.engines[r].Improbe(comm(r), s.num(p[2]), s.num(p[3]), &c)
		if err != nil {
			s.printf("  error: %v", err)
		}
		s.probed(&c)
		if native {
			s.printf("  native")
		} else {
			s.messages[p[1]] = h
		}
	case "mrecv":
		r := s.num(p[0])
		o := &op{cell: new(Cell), rank: r, buf: make([]byte, s.num(p[2])), recv: true}
		s.start(p[1], o, s.f.engines[r].Mrecv(s.messages[p[1]], o.buf, o.cell))
	case "cancel":
		o := s.ops[p[0]]
		if o.nat != nil {
			o.nat.cancelled = o.nat.mail == nil
		} else if err := s.f.engines[o.rank].Cancel(o.cell); err != nil {
			s.printf("  error: %v", err)
		}
	case "progress":
		s.f.engines[s.num(p[0])].Progress(0)
	case "relay":
		n := 0
		if len(p) > 1 {
			n = s.num(p[1])
		}
		s.f.relay(s.num(p[0]), n)
	case "tick":
		e := s.f.engines[s.num(p[0])]
		e.lock()
		e.links.Tick(0)
		e.unlock()
	case "settle":
		s.f.settle()
	default:
		s.t.Fatalf("no command %q", w[0])
	}
}

// doNet carries out a command that is for a net alone, or means something else there.
func (s *script) doNet(command string, p []string) bool {
	defer s.n.say()
	switch command {
	case "lose":
		s.n.lose(s.n.strands[s.num(p[0])][s.num(p[1])])
	case "back":
		s.n.back(s.n.strands[s.num(p[0])][s.num(p[1])])
	case "meet":
		s.n.meet(s.num(p[0]), s.num(p[1]))
	case "part":
		s.n.part(s.num(p[0]), s.num(p[1]))
	case "cut", "repair":
		s.n.cut(s.num(p[0]), s.num(p[1]), command == "cut")
	case "relay":
		most := 0
		if len(p) > 2 {
			most = s.num(p[2])
		}
		s.n.relay(s.n.strands[s.num(p[0])][s.num(p[1])], most)
	case "tick":
		e := s.f.engines[s.num(p[0])]
		e.lock()
		e.links.Tick(time.Duration(s.num(p[1])) * time.Millisecond)
		e.unlock()
	case "bye":
		e := s.f.engines[s.num(p[0])]
		e.lock()
		e.links.FlushAcks()
		e.links.SendBye()
		e.links.Flush()
		e.unlock()
	case "settle":
		s.n.settle()
	default:
		return false
	}
	return true
}

// contents returns n bytes that show the name of their send.
func (s *script) contents(name string, n int) []byte {
	b := []byte(strings.Repeat(name+".", n/(len(name)+1)+1))[:n]
	s.sends, s.payload = append(s.sends, name), append(s.payload, string(b))
	return b
}

func (s *script) start(name string, o *op, err error) {
	if err != nil {
		s.printf("  error: %v", err)
		return
	}
	if s.ops[name] != nil {
		s.t.Fatalf("%s twice", name)
	}
	s.ops[name] = o
	s.order = append(s.order, name)
}

// recv starts a receive as the shim does for MPI_Irecv.
func (s *script) recv(r int, name string, c *Comm, source, tag, n int) {
	e := s.f.engines[r]
	o := &op{cell: new(Cell), rank: r, buf: make([]byte, n), recv: true, comm: c}
	if source != AnySource && !c.IsRemote(source) && !e.Shadowed(c, source, tag) {
		o.nat = &nativeRecv{cell: o.cell, buf: o.buf, context: c.User, source: c.LocalRank(source), tag: tag}
		s.f.natives[r].recvs = append(s.f.natives[r].recvs, o.nat)
		s.start(name, o, nil)
		s.printf("  native")
		return
	}
	s.start(name, o, e.Irecv(c, KindP2P, o.buf, source, tag, o.cell))
}

func (s *script) probed(c *Cell) {
	if c.Done() {
		s.printf("  found: source=%d tag=%d bytes=%d", c.Source, c.Tag, c.Bytes)
	} else {
		s.printf("  nothing")
	}
}

// completed shows the operations that ended since the last call, changes of busy ranks, and
// failures.
func (s *script) completed() {
	for _, name := range s.order {
		o := s.ops[name]
		if o.nat != nil && !o.shown {
			s.f.natives[o.rank].settle()
			if o.nat.mail != nil || o.nat.cancelled {
				o.nat.fill(o.cell, o.buf, o.comm)
				o.cell.Finish()
			}
		}
		if o.shown || !o.cell.Done() {
			continue
		}
		o.shown = true
		c := o.cell
		switch {
		case c.Cancelled != 0:
			s.printf("%s: cancelled", name)
		case o.recv:
			what := ""
			for i, whole := range s.payload { // the last one whose beginning it is
				if c.Bytes > 0 && strings.HasPrefix(whole, string(o.buf[:c.Bytes])) {
					what = s.sends[i]
				}
			}
			s.printf("%s: source=%d tag=%d bytes=%d (%s) error=%d", name, c.Source, c.Tag, c.Bytes, what, c.Error)
		default:
			s.printf("%s: sent error=%d", name, c.Error)
		}
	}
	for r, n := range s.f.natives {
		if n.busy != s.busy[r] {
			s.busy[r] = n.busy
			s.printf("  rank %d busy=%v", r, n.busy)
		}
		if n.failed != "" {
			s.printf("  rank %d fails: %s", r, n.failed)
			n.failed = ""
		}
	}
}
