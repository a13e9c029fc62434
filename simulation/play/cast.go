package play

import (
	"fmt"
	"slices"
	"time"

	"github.com/leidenzipper/zipper/contention/platform"
	"github.com/leidenzipper/zipper/forwarder"
	"github.com/leidenzipper/zipper/internal/jobenv"
	"github.com/leidenzipper/zipper/mmpi/engine"
	"github.com/leidenzipper/zipper/simulation/kernel"
	"github.com/leidenzipper/zipper/simulation/process"
)

// proc is a simulated process that sends and receives messages.
type proc struct {
	r       *run              // run that has the process
	p       *kernel.Process   // simulated operating-system process
	host    string            // name of its host in the platform file
	cluster int               // index of its cluster; -1 on a zipper node
	virtual int               // rank in the whole job, over all clusters; 0 on a zipper node
	local   int               // rank in its cluster; 0 on a zipper node
	members []*process.Member // membership in each job, by index in run.jobs
	comms   []*engine.Comm    // communicator of all processes of each job, by index in run.jobs
	pending [][]operation     // operations under way in each job, by index in run.jobs
	// coming has the indices in run.messages of messages whose receives are not posted yet, by
	// sender.
	coming map[*proc][]int
	data   []byte         // payload that all messages share, because no one reads it
	turns  []step         // recorded steps; nil if nothing was recorded
	player *kernel.Thread // thread that takes the recorded steps; nil if there are none
}

// simJob is a job of all processes. It uses all forwarders, or one of them where messages are
// spread over zippers.
type simJob struct{ env jobenv.Job }

// cast creates the forwarders and the processes that the messages need, and has the processes join
// their jobs.
func (r *run) cast(messages []platform.Message) error {
	if err := r.processes(messages); err != nil {
		return err
	}
	r.rank()
	if err := r.read(messages); err != nil {
		return err
	}
	if slices.ContainsFunc(r.messages, func(m message) bool { return m.engine }) {
		r.makeJobs()
	}
	if r.members == 0 {
		r.onJoined()
	}
	return nil
}

// processes creates a process for each rank that a message names, or for each host where messages
// are between hosts. It returns an error if a message names an unknown host.
func (r *run) processes(messages []platform.Message) error {
	for _, m := range messages {
		for i, host := range []string{m.From, m.To} {
			if !r.p.HasHost(host) {
				return fmt.Errorf("message %s: there is no host %q", m.Name, host)
			}
			if m.Ranks != nil {
				if r.byRank[m.Ranks[i]] == nil {
					r.byRank[m.Ranks[i]] = r.process(host)
				}
			} else if r.byHost[host] == nil {
				r.byHost[host] = r.process(host)
			}
		}
	}
	return nil
}

func (r *run) process(host string) *proc {
	p := &proc{r: r, p: r.k.Process(host), host: host, cluster: r.p.ClusterOf(host)}
	p.p.On(r.hosts[host])
	r.procs = append(r.procs, p)
	return p
}

// rank gives each process of a cluster its rank in the whole job and in its cluster, in the order
// of clusters and hosts.
func (r *run) rank() {
	at := func(p *proc) int {
		if p.cluster < 0 {
			return 0
		}
		return slices.Index(r.p.Clusters[p.cluster].Hosts.Names, p.host)
	}
	slices.SortStableFunc(r.procs, func(a, b *proc) int {
		if a.cluster != b.cluster {
			return a.cluster - b.cluster
		}
		return at(a) - at(b)
	})
	n, of := 0, make([]int, len(r.p.Clusters))
	for _, p := range r.procs {
		if p.cluster < 0 {
			continue
		}
		p.virtual, p.local = n, of[p.cluster]
		of[p.cluster]++
		n++
	}
}

func (r *run) makeJobs() {
	layout := r.layout()
	for i := range r.p.Zippers {
		z := &r.p.Zippers[i]
		cfg := forwarder.Config{Memory: 1 << 30, Trunk: r.streams(z)}
		r.forwarders = append(r.forwarders, r.world.NewForwarder(z.Name, r.hosts[z.Name], cfg, ports(z)...))
	}
	add := func(id string, zippers []platform.Zipper) {
		j := &simJob{jobenv.Job{ID: id, Secret: "simulated", Layout: layout, Networks: r.transit(layout), Timeout: joinTime}}
		for _, z := range zippers {
			j.env.Forwarders = append(j.env.Forwarders, z.Name)
			if !r.star() {
				j.env.Zippers = append(j.env.Zippers, jobenv.Zipper{Ports: r.doors(&z)})
			}
		}
		r.jobs = append(r.jobs, j)
	}
	if r.spread() {
		for i, z := range r.p.Zippers {
			add(fmt.Sprintf("simulated-%d", i), []platform.Zipper{z})
		}
	} else {
		add("simulated", r.p.Zippers)
	}
	for _, p := range r.procs {
		if p.cluster >= 0 {
			p.join()
		}
	}
}

// doors returns the ports of zipper z, one for each cluster that z joins, as a job describes them
// in which messages may pass several zippers.
func (r *run) doors(z *platform.Zipper) (list []jobenv.Port) {
	for _, c := range r.p.Clusters {
		if _, ok := z.Ports[c.Name]; ok {
			list = append(list, jobenv.Port{Network: c.Name, Address: port(z.Name, c.Name)})
		}
	}
	return list
}

// streams returns the number of connections for large messages that zipper z has to another one:
// the largest Streams of the networks that z joins.
func (r *run) streams(z *platform.Zipper) (n int) {
	for i := range r.p.Clusters {
		c := &r.p.Clusters[i]
		if _, ok := z.Ports[c.Name]; ok {
			n = max(n, c.Streams)
		}
	}
	return n
}

// transit returns the names of the clusters without processes, which layout leaves out and through
// which messages of a job may pass. It is nil if every zipper joins all clusters with processes.
func (r *run) transit(layout []jobenv.Cluster) (list []string) {
	for _, c := range r.p.Clusters {
		if !r.star() && !slices.ContainsFunc(layout, func(l jobenv.Cluster) bool { return l.Name == c.Name }) {
			list = append(list, c.Name)
		}
	}
	return list
}

func ports(z *platform.Zipper) (list []string) {
	for c := range z.Ports {
		list = append(list, port(z.Name, c))
	}
	slices.Sort(list)
	return list
}

// join starts a thread of process p that joins all jobs, one after the other, and then posts the
// first receives.
func (p *proc) join() {
	r := p.r
	r.members++
	c := &r.p.Clusters[p.cluster]
	p.members, p.comms = make([]*process.Member, len(r.jobs)), make([]*engine.Comm, len(r.jobs))
	p.pending = make([][]operation, len(r.jobs))
	p.p.Go(func() {
		for i, j := range r.jobs {
			m := r.world.NewMember(p.virtual, p.p, process.NewNative(new(process.Cluster), p.local))
			p.members[i] = m
			e := process.Entry{Job: j.env, Local: p.local, Host: p.host, Timeout: joinTime, Patience: patience,
				Silence: time.Second, Direct: p.directs(i)}
			e.Job.Cluster = c.Name
			e.Job.Forwarders = nil
			for _, z := range j.env.Forwarders {
				e.Job.Forwarders = append(e.Job.Forwarders, port(z, c.Name))
			}
			var err error
			if err = m.Enter(&e, process.Clusters(&j.env)); err == nil {
				p.comms[i], err = m.Comm()
			}
			if err != nil {
				r.fail(fmt.Errorf("%s: %w", p.host, err))
				return
			}
		}
		p.post()
		if r.in++; r.in == r.members {
			r.onJoined()
		}
	})
}
