package ports

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/leidenzipper/zipper/internal/facts"
	"github.com/leidenzipper/zipper/internal/jobenv"
	"github.com/leidenzipper/zipper/internal/wire"
)

// Side is the description that each end of a meeting sends to the other.
type Side struct {
	Job         string
	Layout      []jobenv.Cluster
	Members     []int32  // virtual ranks of the processes to connect, in order
	Forwarders  []string // addresses of forwarders, as the process reaches them
	HostKeys    []string // host keys that the forwarders must have; "" for any
	Zippers     []string // forwarders of a job of several hops
	Networks    []string
	Level       string
	Patience    string
	Collectives string
	// Facts is the format of data in the memory of the process that meets the other job.
	Facts facts.Word
	// Mixed says that the job's clusters differ in their format of long double.
	Mixed bool
}

// Plan is the agreement of both ends of a meeting: a connection.
type Plan struct {
	ID     string // id of its job
	Apart  bool   // whether the jobs have different forwarders
	Accept Side
	Dial   Side
}

func (s *Self) side(members []int32) Side {
	level, _ := jobenv.ParseLevel(s.Job.Level, s.Job.Protocol, s.Job.Networks) // it was parsed before
	me := Side{Job: s.Job.ID, Layout: s.Job.Layout, Members: members, Forwarders: s.Job.Forwarders,
		Networks: s.Job.Networks, Level: level.String(), Patience: s.Job.Patience, Collectives: s.Job.Collectives,
		Facts: s.Local.Facts, Mixed: s.Mixed}
	for _, a := range s.Job.Forwarders {
		me.HostKeys = append(me.HostKeys, s.Job.HostKeys[a])
	}
	for _, z := range s.Job.Zippers {
		me.Zippers = append(me.Zippers, z.String())
	}
	return me
}

// check returns an error for a description that no honest process sends.
func (s *Side) check() error {
	size := 0
	for _, c := range s.Layout {
		if c.Size < 1 || c.Size > wire.MaxRanks {
			return fmt.Errorf("cluster %q has %d ranks", c.Name, c.Size)
		}
		size += c.Size
	}
	if len(s.HostKeys) != len(s.Forwarders) {
		return fmt.Errorf("%d host keys of %d forwarders", len(s.HostKeys), len(s.Forwarders))
	}
	if len(s.Layout) > wire.MaxClusters || size > wire.MaxRanks || len(s.Members) == 0 || len(s.Members) > size {
		return fmt.Errorf("%d processes of %d", len(s.Members), size)
	}
	seen := make([]bool, size)
	for _, m := range s.Members {
		if m < 0 || int(m) >= size || seen[m] {
			return fmt.Errorf("process %d of %d", m, size)
		}
		seen[m] = true
	}
	return nil
}

// Bytes returns the plan in the form for the other processes of the job.
func (p *Plan) Bytes() []byte {
	b, _ := json.Marshal(p) // strings and numbers, so it cannot fail
	return b
}

// ParsePlan parses the result of Bytes.
func ParsePlan(b []byte) (*Plan, error) {
	p := &Plan{}
	if err := json.Unmarshal(b, p); err != nil {
		return nil, fmt.Errorf("the plan of a connection: %w", err)
	}
	return p, p.check()
}

// taken returns the plan that the accepting end of a meeting has sent, with the other end's own
// side.
func taken(b []byte, mine Side) (*Plan, error) {
	p := &Plan{}
	if err := json.Unmarshal(b, p); err != nil {
		return nil, fmt.Errorf("the plan of a connection: %w", err)
	}
	p.Dial = mine
	return p, p.check()
}

func (p *Plan) check() error {
	for _, s := range []*Side{&p.Accept, &p.Dial} {
		if err := s.check(); err != nil {
			return fmt.Errorf("the plan of a connection: job %q names %w", s.Job, err)
		}
	}
	return p.fits()
}

// fits returns an error if the formats of data in the memory of both sides do not fit. Processes
// convert long doubles from their start or never, so jobs that differ can only be connected if both
// convert already.
func (p *Plan) fits() error {
	a, b := &p.Accept, &p.Dial
	if s := a.Facts.Fits(b.Facts); s != "" {
		return fmt.Errorf("jobs %q and %q cannot be connected: %s", a.Job, b.Job, s)
	}
	if a.Mixed != b.Mixed || !a.Mixed && facts.Mixed([]facts.Word{a.Facts, b.Facts}) {
		return fmt.Errorf("jobs %q and %q cannot be connected: their formats of long double differ; start them as one job",
			a.Job, b.Job)
	}
	return nil
}

// Inside reports whether both sides belong to one job, which connects them already.
func (p *Plan) Inside() bool {
	return p.Accept.Job == p.Dial.Job && slices.Equal(p.Accept.Layout, p.Dial.Layout)
}

// Process is one process of a connection: its job and its virtual rank there.
type Process struct {
	Job  string
	Rank int32
}

// Processes returns the processes of the connection: the accepting side's first, in the order of
// each side.
func (p *Plan) Processes() (all []Process) {
	for _, s := range []*Side{&p.Accept, &p.Dial} {
		for _, m := range s.Members {
			all = append(all, Process{s.Job, m})
		}
	}
	return all
}

// part is the share of one cluster in a connection.
type part struct {
	side    *Side
	cluster int    // index in side.Layout
	name    string // name in the connection
	members []int  // indices in Processes
}

// parts returns the clusters of the connection, in order of its virtual ranks.
func (p *Plan) parts() (list []*part) {
	taken := map[string]bool{}
	place := 0
	for i, s := range []*Side{&p.Accept, &p.Dial} {
		of := make([]*part, len(s.Layout))
		for c, cl := range s.Layout {
			of[c] = &part{side: s, cluster: c, name: cl.Name}
			for i == 1 && taken[of[c].name] { // also a name of the other job's
				of[c].name = "~" + of[c].name
			}
		}
		for _, cl := range s.Layout {
			taken[cl.Name] = true
		}
		for _, m := range s.Members {
			c, end := 0, s.Layout[0].Size
			for int(m) >= end {
				c++
				end += s.Layout[c].Size
			}
			of[c].members = append(of[c].members, place)
			place++
		}
		for _, f := range of {
			if len(f.members) > 0 {
				list = append(list, f)
			}
		}
	}
	return list
}

// Seat is a process's place in a connection.
type Seat struct {
	Job    jobenv.Job
	Native int               // rank among those of its cluster
	Size   int               // number of processes of its cluster
	Ranks  []int32           // virtual rank in the connection of each of Processes
	Via    map[string]string // addresses of the forwarders in Job at which this process reaches them
}

// Seat returns the connection's job for this process. accepts says whether its side is the
// accepting one.
func (p *Plan) Seat(self *Self, accepts bool) (*Seat, error) {
	mine := &p.Dial
	if accepts {
		mine = &p.Accept
	}
	job := jobenv.Job{ID: p.ID, Secret: self.Job.Secret, Ticket: self.Job.Ticket, Timeout: self.Job.Timeout,
		Log:  self.Job.Log,
		Poll: self.Job.Poll, Protocol: self.Job.Protocol, InPlace: self.Job.InPlace, Cache: self.Job.Cache,
		HostKeys: self.Job.HostKeys, DirectAllow: self.Job.DirectAllow, Patience: p.Accept.Patience, Collectives: p.Accept.Collectives}
	seat := &Seat{Ranks: make([]int32, len(p.Accept.Members)+len(p.Dial.Members))}
	procs, next, found := p.Processes(), int32(0), false
	parts := p.parts()
	for _, f := range parts {
		job.Layout = append(job.Layout, jobenv.Cluster{Name: f.name, Size: len(f.members)})
		for i, at := range f.members {
			seat.Ranks[at] = next
			next++
			if f.side == mine && procs[at].Rank == int32(self.Rank) {
				job.Cluster, seat.Native, seat.Size, found = f.name, i, len(f.members), true
			}
		}
	}
	if !found {
		return nil, fmt.Errorf("the plan of a connection lacks process %d of this job", self.Rank)
	}
	var err error
	if job.Level, err = stronger(p.Accept.Level, p.Dial.Level); err != nil {
		return nil, err
	}
	switch {
	case p.Apart:
		seat.Via, err = apart(&job, p, parts, mine, self.Job.Forwarders)
	case len(p.Accept.Zippers) > 0:
		err = side(&job, p, parts)
	default:
		// Each forwarder has one place. A side that reaches them by other addresses has them in the
		// same order.
		n := min(len(p.Accept.Forwarders), len(p.Dial.Forwarders))
		if len(self.Job.Forwarders) < n {
			err = fmt.Errorf("this process knows %d forwarders, others %d: name the same in all clusters",
				len(self.Job.Forwarders), n)
			break
		}
		job.Forwarders = self.Job.Forwarders[:n]
	}
	seat.Job = job
	return seat, err
}

func stronger(a, b string) (string, error) {
	x, err := jobenv.ParseLevel(a, "", nil)
	if err != nil {
		return "", err
	}
	y, err := jobenv.ParseLevel(b, "", nil)
	return max(x, y).String(), err
}

// link is the network between the forwarders of two jobs.
const link = "~"

// apart makes the connection's job one of two hops: the clusters of each side reach the forwarders
// of their own job, and those of the dialling side dial the others.
func apart(job *jobenv.Job, p *Plan, parts []*part, mine *Side, own []string) (map[string]string, error) {
	if len(p.Accept.Zippers)+len(p.Dial.Zippers) > 0 {
		return nil, errors.New("jobs of several hops are connected only where both name the same forwarders: " +
			"give both the same --zipper addresses")
	}
	if len(own) != len(mine.Forwarders) {
		return nil, fmt.Errorf("this process knows %d forwarders, the one that connects %d: name the same in all clusters",
			len(own), len(mine.Forwarders))
	}
	job.Networks = []string{link}
	var zippers []jobenv.Zipper
	for _, s := range []*Side{&p.Accept, &p.Dial} {
		for i, a := range s.Forwarders {
			z := jobenv.Zipper{HostKey: s.HostKeys[i]}
			for _, f := range parts {
				if f.side == s {
					z.Ports = append(z.Ports, jobenv.Port{Network: f.name, Address: a})
				}
			}
			remote := jobenv.Port{Network: link}
			if s == &p.Accept {
				remote.Address = a
			}
			z.Ports = append(z.Ports, remote)
			zippers = append(zippers, z)
		}
	}
	job.WithZippers(zippers)
	via := map[string]string{}
	for i, a := range mine.Forwarders {
		via[a] = own[i]
	}
	return via, nil
}

// side makes the connection's job one over the forwarders that both jobs have: each cluster of the
// dialling job is a network next to that with the same name.
func side(job *jobenv.Job, p *Plan, parts []*part) error {
	if !slices.Equal(p.Accept.Zippers, p.Dial.Zippers) {
		return errors.New("jobs of several hops are connected only where both name the same forwarders: " +
			"give both the same --zipper addresses")
	}
	zippers, err := parseZippers(p.Accept.Zippers)
	if err != nil {
		return err
	}
	populated := map[string]bool{}
	for _, f := range parts {
		populated[f.name] = true
		if f.side == &p.Dial {
			addNetwork(zippers, p.Dial.Layout[f.cluster].Name, f.name)
		}
	}
	var networks []string
	for _, c := range p.Accept.Layout {
		if !populated[c.Name] {
			networks = append(networks, c.Name)
		}
	}
	zippers, job.Networks = prune(zippers, append(networks, p.Accept.Networks...))
	job.WithZippers(zippers)
	return nil
}

func parseZippers(list []string) (zippers []jobenv.Zipper, err error) {
	for _, s := range list {
		_, z, err := jobenv.ParseZipper(s)
		if err != nil {
			return nil, err
		}
		zippers = append(zippers, z)
	}
	return zippers, nil
}

// addNetwork adds a network next to an existing one: at the first forwarder of that, and at those
// that are on the same networks as this one. At further forwarders it would close a loop.
func addNetwork(zippers []jobenv.Zipper, there, name string) {
	var first string
	for i := range zippers {
		z := &zippers[i]
		a := z.Address(there)
		var on []string
		for _, p := range z.Ports {
			if !strings.HasPrefix(p.Network, "~") || p.Network == there {
				on = append(on, p.Network)
			}
		}
		slices.Sort(on)
		key := strings.Join(on, "+")
		if a != "" && (first == "" || first == key) {
			first = key
			z.Ports = append(z.Ports, jobenv.Port{Network: name, Address: a})
		}
	}
}

// prune removes networks without ranks that only one forwarder is on, and forwarders that are on
// one network only.
func prune(zippers []jobenv.Zipper, networks []string) ([]jobenv.Zipper, []string) {
	for again := true; again; {
		again = false
		networks = slices.DeleteFunc(networks, func(n string) bool {
			var on int
			for _, z := range zippers {
				if z.On(n) {
					on++
				}
			}
			if on > 1 {
				return false
			}
			for i := range zippers {
				zippers[i].Ports = slices.DeleteFunc(zippers[i].Ports, func(p jobenv.Port) bool { return p.Network == n })
			}
			again = true
			return true
		})
		zippers = slices.DeleteFunc(zippers, func(z jobenv.Zipper) bool { again = again || len(z.Ports) < 2; return len(z.Ports) < 2 })
	}
	return zippers, networks
}
