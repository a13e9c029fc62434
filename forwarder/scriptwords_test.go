package forwarder

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"go.uber.org/zap"

	"github.com/leidenzipper/zipper/handshake"
	"github.com/leidenzipper/zipper/internal/transport"
	"github.com/leidenzipper/zipper/internal/transport/memnet"
	"github.com/leidenzipper/zipper/internal/wire"
)

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
	case "lost":
		e := s.end(p[0])
		e.lostsSent++
		c := s.cluster(p[1])
		s.send(e, frame(wire.TypeLost, &wire.Lost{Number: e.lostsSent, Cluster: uint16(c), Epoch: 1,
			Reason: "cluster " + p[1] + " is lost at another forwarder"}))
	case "ask":
		s.send(s.end(p[0]), frame(wire.TypeAsk, &wire.Ask{Rank: uint32(s.num(p[1]))}))
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
		links := s.zips[p[0]].links[p[1]]
		if len(links) == 0 {
			links = s.zips[p[0]].taken[p[1]]
		}
		links[s.num(p[2])].Hold(w[0] == "hold")
	case "lose":
		z := s.zips[p[0]]
		for o := range z.f.peers {
			if l, ok := o.conn.Link().(named); ok && l.Link == z.links[p[1]][s.num(p[2])] {
				o.end(memnet.ErrCut)
			}
		}
	case "aside":
		if slices.Contains(p, "error") {
			s.broken = errors.New("does not work")
		}
		s.cuts = slices.Contains(p, "cut")
		work := s.asides
		s.asides = nil
		for _, fn := range work {
			fn()
		}
		s.broken, s.cuts = nil, false
	case "wait":
		s.wait(s.duration(p[0]))
	case "status":
		status := s.zips[p[0]].f.Status()
		if n := status.Totals.LostTrunks; n > 0 && len(status.Jobs) == 0 {
			s.printf("  jobs that are over have lost %d connections to forwarders", n)
		}
		for _, j := range status.Jobs {
			s.printf("  %s: %s, %d of %d joined, %d doors, %d bytes wait; missing %q, refused %q, reason %q",
				j.Job, j.State, j.Joined, j.Ranks, j.Doors, j.QueuedBytes, j.Missing, j.Refused, j.Reason)
			for _, l := range j.Lost {
				s.printf("  %s: %s was lost after %v: %s", j.Job, l.Cluster, l.At.Sub(j.Started), l.Reason)
			}
			for _, t := range j.Trunks {
				s.printf("  %s: %d connections to %s, %d lost", j.Job, t.Connections, t.Forwarder, t.Lost)
			}
		}
	case "reload":
		f := s.zips[p[0]].f
		cfg := f.cfg
		if slices.Contains(p, "undialled") {
			cfg.Dial = nil
		}
		if slices.Contains(p, "strict") { // refuses all jobs that are not here
			cfg.Level, cfg.Secret, cfg.Jobs, cfg.MaxRanks = wire.LevelSealed, "another secret", []string{"k"}, 1
		}
		if err := f.Reload(cfg); err != nil {
			s.t.Fatal(err)
		}
	case "ended":
		s.zips[p[0]].f.ClusterEnded(p[1], p[2])
	case "half":
		h := wire.Half{State: map[string]wire.HalfState{"ended": wire.HalfEnded, "suspended": wire.HalfSuspended,
			"resumed": wire.HalfResumed}[p[3]], Code: 1, Job: p[1], Cluster: p[2], Reason: "cluster " + p[2] + " is " + p[3],
			PublicKey: s.publicKey(p[1])}
		if text, refused := s.zips[p[0]].f.handleReport(&h); refused != nil {
			s.printf("  %s: refused: %s", p[0], refused.Reason)
		} else {
			s.printf("  %s: %s", p[0], text)
		}
	case "stop":
		f := s.zips[p[0]].f
		f.cfg.Linger = 0
		shutdown(f, slices.Contains(p, "resume"))
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
	z := &scripted{links: map[string][]*memnet.Link{}, taken: map[string][]*memnet.Link{}}
	var roundTrip time.Duration
	if d := opt["far"]; d != "" {
		roundTrip = s.duration(d)
	}
	cfg := Config{Listeners: []transport.Listener{silent{name}}, Loops: 1, Log: zap.New(scriptLog{s, name}, zap.WithClock(s.now)),
		clock: s.now, strict: true,
		spawn: func(fn func()) { s.asides = append(s.asides, fn) },
		Dial: func(_ context.Context, addr string, failed func(error)) (transport.Link, error) {
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
			other.taken[name] = append(other.taken[name], b)
			if s.cuts {
				a.Cut()
			}
			other.f.take(named{b, from, roundTrip}, other.f.admitLink, (*peer).challenge)
			return named{a, to, roundTrip}, nil
		},
		JobEnd: func(j Summary) {
			s.printf("  %s: job %s is over: ok=%v code=%d %s", name, j.Job, j.OK, j.Code, j.Reason)
			for _, l := range j.Lost {
				s.printf("  %s: %s was lost after %v: %s", name, l.Cluster, l.At.Sub(j.Started), l.Reason)
			}
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
	if n := opt["gathering"]; n != "" {
		cfg.MaxGathering = s.num(n)
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
		case "on_loss", "quorum":
			s.job.Settings += map[string]string{"on_loss": handshake.SettingOnLoss, "quorum": handshake.SettingQuorum}[k] + "=" + v + " "
		case "networks":
			s.job.Networks = strings.Split(v, ",")
		default:
			s.job.Layout = append(s.job.Layout, wire.Cluster{Name: k, Size: uint32(s.num(v))})
		}
	}
}

// publicKey returns the key of the gathering or running job with an id.
func (s *script) publicKey(id string) [wire.PublicKeyLen]byte {
	for _, name := range s.order {
		for _, r := range s.zips[name].f.all() {
			if r.id == id {
				return r.key
			}
		}
	}
	return [wire.PublicKeyLen]byte{}
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
	if slices.Contains(p, "other") {
		id.Instance++
	}
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
	if v := opt["lost"]; v != "" {
		id.Lost = []int{s.cluster(v)}
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
		e.inside = fmt.Sprintf("10.0.0.1:%d", 5000+id.Rank)
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
	s.zips[zip].f.take(named{b, e.name, 0}, s.zips[zip].f.admitLink, (*peer).challenge)
}
