package transfer

import (
	"cmp"
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	"net"
	"os/exec"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/leidenzipper/zipper/contention/calibrate"
	"github.com/leidenzipper/zipper/internal/agent"
	"github.com/leidenzipper/zipper/internal/jobenv"
)

// Host is a host for an agent.
type Host struct {
	Name string
	// Address is the host's address for the hosts with which it shares a network; an empty one
	// means Name.
	Address string
	// Cluster is empty for a zipper node, which is on all networks.
	Cluster string
	Agent   *exec.Cmd
}

// Forwarder is a forwarder that runs already.
type Forwarder struct {
	Name    string
	Address map[string]string // HOST:PORT by cluster
}

// Message is a transfer between hosts.
type Message struct {
	From, To string
	Via      int // index of the forwarder, or Direct
	Bytes    int
}

// Session leads agents. It is not safe for concurrent use.
type Session struct {
	// OneMachine tells that all hosts are namespaces of one machine, with one clock: messages then
	// start together to some microseconds.
	OneMachine bool
	agents     map[string]*remote
	order      []*remote
	layout     []jobenv.Cluster
	forwarders []Forwarder
	// next is the id of the next message.
	next int
	cpu  map[string]float64
	// began has the moments by host at which the last Run began.
	began map[string]int64
}

type remote struct {
	Host
	conn *agent.Conn
	port int
	// rank is the virtual rank; -1 means none.
	rank int
	// member is the host's number in its cluster.
	member int
}

// Open starts the agents and joins those of clusters to one job for each forwarder. The caller must
// close the session when the error is nil.
func Open(hosts []Host, forwarders []Forwarder) (*Session, error) {
	s := &Session{agents: make(map[string]*remote), cpu: make(map[string]float64)}
	if err := s.open(hosts, forwarders); err != nil {
		s.end()
		return nil, err
	}
	return s, nil
}

func (s *Session) open(hosts []Host, forwarders []Forwarder) error {
	members := make(map[string]int) // number of hosts of a cluster so far
	for _, h := range hosts {
		if s.agents[h.Name] != nil {
			return fmt.Errorf("two hosts are named %s", h.Name)
		}
		r := &remote{Host: h, rank: -1}
		var err error
		if r.conn, err = agent.Start(h.Agent); err != nil {
			return fmt.Errorf("host %s: %w", h.Name, err)
		}
		s.agents[h.Name] = r
		s.order = append(s.order, r)
		if h.Cluster == "" {
			continue
		}
		if members[h.Cluster]++; members[h.Cluster] == 1 {
			s.layout = append(s.layout, jobenv.Cluster{Name: h.Cluster})
		}
	}
	first := make(map[string]int)
	ranks := 0
	for i := range s.layout {
		s.layout[i].Size = members[s.layout[i].Name]
		first[s.layout[i].Name] = ranks
		ranks += s.layout[i].Size
	}
	for _, r := range s.order {
		var a answer
		if err := r.conn.Hello(&a); err != nil || a.Port == 0 {
			return fmt.Errorf("host %s: the agent did not start: %w", r.Name, err)
		}
		r.port = a.Port
	}
	if len(s.layout) < 2 || len(forwarders) == 0 {
		return nil
	}
	s.forwarders = forwarders
	taken := make(map[string]int)
	for _, r := range s.order {
		if r.Cluster != "" {
			r.member = taken[r.Cluster]
			taken[r.Cluster]++
			r.rank = first[r.Cluster] + r.member
		}
	}
	var ways [][]Forwarder
	for _, f := range forwarders {
		ways = append(ways, []Forwarder{f})
	}
	return s.join(ways...)
}

// join has the clusters' agents join a job for each set of forwarders.
func (s *Session) join(ways ...[]Forwarder) error {
	jobs := make([]jobenv.Job, len(ways))
	for k := range jobs {
		jobs[k] = jobenv.Job{ID: "transfer-" + rand.Text(), Secret: jobenv.NewSecret(), Layout: s.layout,
			Timeout: joinPatience}
	}
	questions := make(map[*remote]request)
	for _, r := range s.order {
		if r.Cluster == "" {
			continue
		}
		q := &joinRequest{Rank: r.member, Host: r.Name}
		for k, way := range ways {
			j := jobs[k]
			j.Cluster = r.Cluster
			for _, f := range way {
				if f.Address[r.Cluster] == "" {
					return fmt.Errorf("forwarder %s has no address for cluster %s", f.Name, r.Cluster)
				}
				j.Forwarders = append(j.Forwarders, f.Address[r.Cluster])
			}
			q.Jobs = append(q.Jobs, j)
		}
		questions[r] = request{Join: q}
	}
	_, err := s.ask(questions)
	return err
}

// Together joins one more job, of all forwarders, for as long as f runs. Messages with the given
// via are routed as those of an MPI job would be.
func (s *Session) Together(f func(via int) error) error {
	err := s.join(s.forwarders)
	if err == nil {
		err = f(len(s.forwarders))
	}
	questions := make(map[*remote]request)
	for _, r := range s.order {
		if r.rank >= 0 {
			questions[r] = request{Drop: true}
		}
	}
	_, derr := s.ask(questions)
	return errors.Join(err, derr)
}

// CopyRate returns how fast one thread of a host copies memory, in bytes/s.
func (s *Session) CopyRate(host string) (float64, error) {
	r := s.agents[host]
	if r == nil {
		return 0, fmt.Errorf("no host is named %s", host)
	}
	answers, err := s.ask(map[*remote]request{r: {Copy: true}})
	return answers[r].Rate, err
}

// Costs returns the processor times of a host.
func (s *Session) Costs(host string) (calibrate.Costs, error) {
	r := s.agents[host]
	if r == nil {
		return calibrate.Costs{}, fmt.Errorf("no host is named %s", host)
	}
	answers, err := s.ask(map[*remote]request{r: {Costs: true}})
	if err != nil {
		return calibrate.Costs{}, err
	}
	return *answers[r].Costs, nil
}

// ask sends all requests at once and collects the answers.
func (s *Session) ask(questions map[*remote]request) (map[*remote]answer, error) {
	answers := make(map[*remote]answer)
	var errs []error
	var mu sync.Mutex
	var wg sync.WaitGroup
	for r, q := range questions {
		wg.Go(func() {
			var a answer
			err := r.conn.Ask(q, &a)
			if err == nil && a.Error != "" {
				err = errors.New(a.Error)
			}
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				errs = append(errs, fmt.Errorf("host %s: %w", r.Name, err))
			}
			answers[r] = a
		})
	}
	wg.Wait()
	return answers, errors.Join(errs...)
}

// Run starts all messages at once and returns the time of each in seconds, until its last byte had
// arrived.
func (s *Session) Run(messages []Message) ([]float64, error) {
	batches := make(map[*remote]*batch)
	at := func(r *remote) *batch {
		if batches[r] == nil {
			batches[r] = &batch{}
		}
		return batches[r]
	}
	base := s.next
	for i, m := range messages {
		from, to := s.agents[m.From], s.agents[m.To]
		if from == nil || to == nil || from == to {
			return nil, fmt.Errorf("no path for a message from %s to %s", m.From, m.To)
		}
		if m.Via != Direct && (from.rank < 0 || to.rank < 0 || from.Cluster == to.Cluster) {
			return nil, fmt.Errorf("a message from %s to %s cannot take a forwarder", m.From, m.To)
		}
		p := part{ID: base + i, Via: m.Via, Bytes: m.Bytes,
			Addr: net.JoinHostPort(cmp.Or(to.Address, m.To), strconv.Itoa(to.port))}
		p.Peer = to.rank
		at(from).Sends = append(at(from).Sends, p)
		p.Peer = from.rank
		at(to).Receives = append(at(to).Receives, p)
	}
	s.next += len(messages)
	ready, start := make(map[*remote]request), make(map[*remote]request)
	for r, b := range batches {
		ready[r] = request{Ready: b}
	}
	if _, err := s.ask(ready); err != nil {
		return nil, err
	}
	begin := int64(0)
	if s.OneMachine {
		begin = moment() + int64(startsIn)
	}
	for r := range batches {
		start[r] = request{Go: true, At: begin}
	}
	answers, err := s.ask(start)
	if err != nil {
		return nil, err
	}
	seconds := make([]float64, len(messages))
	s.began = make(map[string]int64)
	for r, a := range answers {
		s.cpu[r.Name], s.began[r.Name] = a.CPU, a.Began
		for _, t := range a.Seconds {
			if t.ID < base || t.ID >= s.next {
				return nil, fmt.Errorf("host %s returned the time of a message that it was not asked for", r.Name)
			}
			seconds[t.ID-base] = t.Seconds
		}
	}
	for i, t := range seconds {
		if t <= 0 {
			return nil, fmt.Errorf("the message from %s to %s was not timed", messages[i].From, messages[i].To)
		}
	}
	return seconds, nil
}

// Starts returns when hosts began in the last Run, in seconds after the first of them, or nil if
// their clocks differ.
func (s *Session) Starts() map[string]float64 {
	if !s.OneMachine || len(s.began) == 0 {
		return nil
	}
	first := slices.Min(slices.Collect(maps.Values(s.began)))
	list := make(map[string]float64)
	for host, at := range s.began {
		list[host] = time.Duration(at - first).Seconds()
	}
	return list
}

// CPU returns the processor time of all agents so far, in seconds.
func (s *Session) CPU() (sum float64) {
	for _, t := range s.cpu {
		sum += t
	}
	return sum
}

// Close leaves the forwarders and ends the agents.
func (s *Session) Close() error {
	q := make(map[*remote]request)
	for _, r := range s.order {
		if r.rank >= 0 {
			q[r] = request{Leave: true}
		}
	}
	_, err := s.ask(q)
	s.end()
	return err
}

func (s *Session) end() {
	for _, r := range s.order {
		r.conn.Close()
	}
	for _, r := range s.order {
		r.conn.Wait(endPatience)
	}
}
