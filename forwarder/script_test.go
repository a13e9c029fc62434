package forwarder

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"

	"github.com/leidenzipper/zipper/handshake"
	"github.com/leidenzipper/zipper/transport"
	"github.com/leidenzipper/zipper/transport/memnet"
	"github.com/leidenzipper/zipper/wire"
)

var update = flag.Bool("update", false, "write the transcripts anew")

// Every testdata/*.txt is a script: lines that begin with "> " are commands, the others what they
// give. One thread drives all: forwarders' loops are stepped, the clock stands still but for
// "wait", and what forwarders do aside (dial, ask the kernel) waits for "aside". Commands:
//
//	forwarder NAME [nat] [patience=D] [linger=D] [trunk=N] [far=D]  starts one; far is the
//	                                               round trip to those that it dials
//	job ID CLUSTER=N… [rails=N] [patience=D] [NAME:CLUSTER,…]…  the job that ranks join; NAME:… are its forwarders
//	                                               if it has several hops
//	join RANK[@NAME] [secret=S] [timeout=D] [layout=CLUSTER:N] [inside]
//	                                               a process of the job opens a link (a0 is the
//	                                               first of cluster a)
//	eager RANK TO SIZE, data RANK TO SIZE          sends a frame to a virtual rank
//	bye RANK, abort RANK CODE, garbage RANK        says so, or sends what is no frame
//	close RANK                                     closes its link
//	stall RANK, read RANK                          does not read any more; does again
//	deaf RANK                                      reads, but does not answer Pings
//	cut NAME NAME [N]                              breaks the link between two forwarders, which the
//	                                               first has dialled: all connections, or one
//	hold NAME NAME N, release NAME NAME N          of what the first sends over one of these nothing
//	                                               arrives; then it does
//	aside [error]                                  does what was to be done aside, or has it fail
//	wait D                                         lets time pass
//	status NAME, stop NAME, kill NAME
//
// RANK is cluster and native rank, with @NAME if it joins more than one forwarder.
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
			s := &script{t: t, now: &steppedClock{now: time.Unix(1e9, 0)}, zips: map[string]*scripted{},
				ends: map[string]*processEnd{}}
			t.Cleanup(s.close)
			for line := range strings.SplitSeq(strings.TrimRight(string(want), "\n"), "\n") {
				switch {
				case strings.HasPrefix(line, "> "):
					s.printf("%s", line)
					s.do(strings.Fields(line[2:]))
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
	t      *testing.T
	now    *steppedClock
	zips   map[string]*scripted
	order  []string // of zips
	dead   []*scripted
	ends   map[string]*processEnd
	joined []string // of ends
	asides []func()
	broken error // what is done aside fails with it
	job    handshake.Identity
	out    strings.Builder
}

// scripted is a forwarder without threads.
type scripted struct {
	f     *Forwarder
	links map[string][]*memnet.Link // to other forwarders, as they were dialled
}

// processEnd is a process's end of its link.
type processEnd struct {
	name, zip string
	link      *memnet.Link
	joiner    *handshake.Joiner // nil: it has joined
	rank      uint32            // virtual, then
	inside    string            // where it takes connections that the kernel passes on
	stalled   bool
	deaf      bool
	gone      bool
	buf       []byte
	seq       uint64
}

func (s *script) printf(format string, args ...any) {
	s.out.WriteString(strings.TrimRight(fmt.Sprintf(format, args...), " ") + "\n")
}

func (s *script) num(w string) int {
	n, err := strconv.Atoi(w)
	if err != nil {
		s.t.Fatalf("%q is not a number", w)
	}
	return n
}

func (s *script) duration(w string) time.Duration {
	d, err := time.ParseDuration(w)
	if err != nil {
		s.t.Fatal(err)
	}
	return d
}

func (s *script) end(name string) *processEnd {
	e := s.ends[name]
	if e == nil {
		s.t.Fatalf("nobody is called %s", name)
	}
	return e
}

func (s *script) do(w []string) {
	var p []string
	opt := map[string]string{}
	for _, x := range w[1:] {
		if k, v, ok := strings.Cut(x, "="); ok && w[0] != "job" {
			opt[k] = v
		} else {
			p = append(p, x)
		}
	}
	switch w[0] {
	case "forwarder":
		s.forwarder(p, opt)
	case "job":
		s.newJob(p)
	case "join":
		s.join(p, opt)
	case "eager", "data":
		e := s.end(p[0])
		make := eager
		if w[0] == "data" {
			make = func(src, dst, seq int, b []byte) []byte { return data(src, dst, uint64(seq), b) }
		}
		e.seq++
		s.send(e, make(int(e.rank), s.num(p[1]), int(e.seq), pattern(s.num(p[2]), 0)))
	case "bye":
		s.send(s.end(p[0]), frame(wire.TypeBye, nil))
	case "abort":
		e := s.end(p[0])
		s.send(e, abortFrame(int32(s.num(p[1])), e.rank, "MPI_Abort"))
	case "garbage":
		s.send(s.end(p[0]), slices.Repeat([]byte{200}, wire.HeaderLen))
	case "close":
		s.leave(s.end(p[0]))
	case "stall", "read":
		s.end(p[0]).stalled = w[0] == "stall"
	case "deaf":
		s.end(p[0]).deaf = true
	case "cut":
		links := s.zips[p[0]].links[p[1]]
		if len(p) > 2 {
			links = links[s.num(p[2]):][:1]
		}
		for _, l := range links {
			l.Cut()
		}
	case "hold", "release":
		s.zips[p[0]].links[p[1]][s.num(p[2])].Hold(w[0] == "hold")
	case "aside":
		if len(p) > 0 {
			s.broken = errors.New("does not work")
		}
		work := s.asides
		s.asides = nil
		for _, fn := range work {
			fn()
		}
		s.broken = nil
	case "wait":
		s.wait(s.duration(p[0]))
	case "status":
		for _, j := range s.zips[p[0]].f.Status().Jobs {
			s.printf("  %s: %s, %d of %d joined, %d doors, %d bytes wait; missing %q, refused %q, reason %q",
				j.Job, j.State, j.Joined, j.Ranks, j.Doors, j.QueuedBytes, j.Missing, j.Refused, j.Reason)
			for _, t := range j.Trunks {
				s.printf("  %s: %d connections to %s, %d lost", j.Job, t.Connections, t.Forwarder, t.Lost)
			}
		}
	case "stop":
		f := s.zips[p[0]].f
		f.cfg.Linger = 0
		f.shutdown()
	case "kill":
		z := s.zips[p[0]]
		delete(s.zips, p[0])
		s.order = slices.DeleteFunc(s.order, func(name string) bool { return name == p[0] })
		s.dead = append(s.dead, z)
		peers := slices.SortedFunc(maps.Keys(z.f.peers), func(p, q *peer) int { return z.f.peers[p] - z.f.peers[q] })
		for _, p := range peers {
			p.conn.Link().Close()
		}
	default:
		s.t.Fatalf("no command %q", w[0])
	}
	s.settle()
}

func (s *script) forwarder(p []string, opt map[string]string) {
	name := p[0]
	z := &scripted{links: map[string][]*memnet.Link{}}
	var far time.Duration
	if d := opt["far"]; d != "" {
		far = s.duration(d)
	}
	cfg := Config{Listeners: []transport.Listener{silent{name}}, Loops: 1, Log: zap.New(scriptLog{s, name}),
		clock: s.now,
		spawn: func(fn func()) { s.asides = append(s.asides, fn) },
		Dial: func(_ context.Context, addr string) (transport.Link, error) {
			other := s.zips[addr]
			if s.broken != nil {
				return nil, s.broken
			}
			if other == nil {
				return nil, errors.New("nobody is there")
			}
			a, b := memnet.Pipe(memnet.Options{})
			from, to := name, addr
			if n := len(z.links[addr]); n > 0 {
				from, to = fmt.Sprintf("%s/%d", name, n), fmt.Sprintf("%s/%d", addr, n)
			}
			z.links[addr] = append(z.links[addr], a)
			other.f.take(named{b, from, far}, other.f.mayConnect, (*peer).challenge)
			return named{a, to, far}, nil
		},
		JobEnd: func(j Summary) {
			s.printf("  %s: job %s is over: ok=%v code=%d %s", name, j.Job, j.OK, j.Code, j.Reason)
			for _, t := range j.Traffic {
				if t.Frames > 0 {
					s.printf("  %s: %s to %s: %d frames, %d bytes", name, t.From, t.To, t.Frames, t.PayloadBytes)
				}
			}
		}}
	if slices.Contains(p, "nat") {
		cfg.NAT = scriptNAT{s}
	}
	if d := opt["patience"]; d != "" {
		cfg.Patience = s.duration(d)
	}
	if n := opt["trunk"]; n != "" {
		cfg.Trunk = s.num(n)
	}
	if d := opt["linger"]; d != "" {
		cfg.Linger = s.duration(d)
	}
	var err error
	if z.f, err = New(cfg); err == nil {
		err = z.f.makeLoops()
	}
	if err != nil {
		s.t.Fatal(err)
	}
	s.zips[name] = z
	s.order = append(s.order, name)
}

func (s *script) newJob(p []string) {
	s.job = identity(p[0], "", 0)
	for _, x := range p[1:] {
		if name, on, ok := strings.Cut(x, ":"); ok {
			var z wire.Zipper
			for _, n := range strings.Split(on, ",") { // a network with a "-" is one that it does not listen on
				n, silent := strings.CutSuffix(n, "-")
				p := wire.Port{Network: uint16(s.network(n)), Address: name}
				if silent {
					p.Address = ""
				}
				z.Ports = append(z.Ports, p)
			}
			s.job.Zippers = append(s.job.Zippers, z)
			continue
		}
		k, v, _ := strings.Cut(x, "=")
		switch k {
		case "rails":
			s.job.Rails = s.num(v)
		case "patience":
			s.job.Patience = s.duration(v).Milliseconds()
		case "networks":
			s.job.Networks = strings.Split(v, ",")
		default:
			s.job.Layout = append(s.job.Layout, wire.Cluster{Name: k, Size: uint32(s.num(v))})
		}
	}
}

func (s *script) cluster(name string) int {
	return slices.IndexFunc(s.job.Layout, func(c wire.Cluster) bool { return c.Name == name })
}

func (s *script) network(name string) int {
	if c := s.cluster(name); c >= 0 {
		return c
	}
	return len(s.job.Layout) + slices.Index(s.job.Networks, name)
}

func (s *script) join(p []string, opt map[string]string) {
	who, zip, several := strings.Cut(p[0], "@")
	if !several {
		zip = s.order[0]
	}
	id := s.job
	id.Cluster, id.Rank = who[:1], s.num(who[1:])
	id.Library, id.Host, id.Instance = "lib-"+id.Cluster, "host-"+id.Cluster, uint64(id.Cluster[0])<<8+uint64(id.Rank)
	for k, z := range id.Zippers {
		if z.Ports[0].Address == zip {
			id.Here = k
		}
	}
	if v := opt["secret"]; v != "" {
		id.Secret = v
	}
	if v := opt["timeout"]; v != "" {
		id.TimeoutMS = s.duration(v).Milliseconds()
	}
	if v := opt["layout"]; v != "" {
		c, n, _ := strings.Cut(v, ":")
		id.Layout = slices.Clone(id.Layout)
		id.Layout[s.cluster(c)].Size = uint32(s.num(n))
	}
	j, err := handshake.NewJoiner(id, [32]byte{1})
	if err != nil {
		s.t.Fatal(err)
	}
	a, b := memnet.Pipe(memnet.Options{Buffer: 8 << 10})
	e := &processEnd{name: p[0], zip: zip, link: a, joiner: j}
	if slices.Contains(p, "inside") {
		e.inside = "10.0.0.1:5000"
	}
	if old := s.ends[e.name]; old != nil && !old.gone {
		old.name += "'"
		s.ends[old.name] = old
		s.joined[slices.Index(s.joined, e.name)] = old.name
	}
	s.ends[e.name] = e
	if !slices.Contains(s.joined, e.name) {
		s.joined = append(s.joined, e.name)
	}
	s.zips[zip].f.take(named{b, e.name, 0}, s.zips[zip].f.mayConnect, (*peer).challenge)
}

func (s *script) send(e *processEnd, frame []byte) {
	if n, err := e.link.TryWrite(frame); n != len(frame) {
		s.t.Fatalf("%s cannot send: %d of %d bytes, %v", e.name, n, len(frame), err)
	}
}

func (s *script) leave(e *processEnd) {
	e.gone = true
	e.link.Close()
}

// settle has forwarders and processes do what they can, until nobody can do more.
func (s *script) settle() {
	for busy := true; busy; {
		busy = false
		for _, name := range s.order {
			for s.zips[name].f.workers[0].Loop.Step() {
				busy = true
			}
		}
		for _, name := range s.joined {
			if e := s.ends[name]; !e.gone && !e.stalled && s.read(e) {
				busy = true
			}
		}
	}
}

// wait lets time pass, as often as the forwarders look at the clock.
func (s *script) wait(d time.Duration) {
	const step = 250 * time.Millisecond
	for ; d > 0; d -= step {
		s.now.advance(min(d, step))
		s.settle()
	}
}

// read takes what has come to a process.
func (s *script) read(e *processEnd) bool {
	p := make([]byte, 64<<10)
	n, err := e.link.TryRead(p)
	if err == transport.ErrAgain {
		return false
	}
	if err != nil {
		what := err.Error()
		if errors.Is(err, io.EOF) {
			what = "end of stream"
		}
		s.printf("  %s→%s %s", e.zip, e.name, what)
		s.leave(e)
		return true
	}
	e.buf = append(e.buf, p[:n]...)
	for {
		h, err := wire.ParseHeader(e.buf)
		if err != nil || len(e.buf) < wire.HeaderLen+int(h.Length) {
			return true
		}
		body := e.buf[wire.HeaderLen : wire.HeaderLen+int(h.Length)]
		if h.Type != wire.TypeCount { // these come by themselves
			s.came(e, h, body)
		}
		e.buf = e.buf[wire.HeaderLen+int(h.Length):]
	}
}

// came shows a frame and does with it what a process would. Pings and their answers are not shown.
func (s *script) came(e *processEnd, h wire.Header, body []byte) {
	if h.Type != wire.TypePing {
		s.printf("  %s→%s %s", e.zip, e.name, describe(h, body))
	}
	switch {
	case e.joiner != nil:
		if h.Type == wire.TypePing && e.deaf {
			return
		}
		e.joiner.HandleMessage(h, body)
		_ = handshake.Drive(e.joiner, func(frame []byte) error { s.send(e, frame); return nil },
			func(ev handshake.Event) error {
				switch ev.Kind {
				case handshake.Asked:
					e.joiner.Inside(e.inside)
				case handshake.Joined:
					e.joiner, e.rank = nil, ev.Layout.Rank
				case handshake.Ended:
					s.leave(e)
				}
				return nil
			})
	case h.Type == wire.TypePing && !e.deaf:
		s.send(e, frame(wire.TypePong, nil))
	}
}

// close frees descriptors.
func (s *script) close() {
	for _, z := range append(slices.Collect(maps.Values(s.zips)), s.dead...) {
		for p := range z.f.peers {
			p.conn.Link().Close()
		}
		z.f.workers.close()
	}
	for _, e := range s.ends {
		e.link.Close()
	}
}
