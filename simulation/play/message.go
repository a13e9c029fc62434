package play

import (
	"errors"
	"fmt"
	"time"

	"golang.org/x/sys/unix"

	"github.com/leidenzipper/zipper/contention/platform"
	"github.com/leidenzipper/zipper/internal/transport"
	"github.com/leidenzipper/zipper/mmpi/engine"
	"github.com/leidenzipper/zipper/simulation/kernel"
)

// message is a message while it is sent.
type message struct {
	*platform.Message
	from, to *proc // processes that send and receive it
	bytes    int   // length in bytes
	// engine says whether engines send it, over forwarders or a direct link; otherwise it has its
	// own stream or stays in memory.
	engine bool
	job    int   // index in run.jobs of the job over which it is sent
	tag    int   // tag with which it is sent by MPI
	waits  int   // number of messages that must finish before it starts
	then   []int // indices in run.messages of messages that wait until it has arrived
	// sent has the indices in run.messages of messages that wait until its sender has finished
	// with it.
	sent   []int
	begins time.Duration // earliest start, counted from run.begin
	// played says whether it is one of the recorded steps of its sender and receiver. Then the
	// thread that takes these steps sends it, and launch does not.
	played bool
	left   bool          // the sender has finished with it
	there  bool          // whether it has arrived
	start  time.Duration // virtual time at which its sender began to send it
	finish time.Duration // virtual time at which it arrived
	stands []stand       // waiting times at the resources that it passes
}

// operation is a send or receive of an engine that is under way.
type operation struct {
	cell *engine.Cell // state of the operation until it completes
	over func()       // function that is called when the operation has completed
}

// read creates the messages of the run from list, with their dependencies on each other.
func (r *run) read(list []platform.Message) error {
	of := func(m *platform.Message, i int, host string) *proc {
		if m.Ranks != nil {
			return r.byRank[m.Ranks[i]]
		}
		return r.byHost[host]
	}
	r.messages = make([]message, len(list))
	tags := map[[2]*proc]int{}
	for i := range list {
		m := &list[i]
		x := &r.messages[i]
		*x = message{Message: m, from: of(m, 0, m.From), to: of(m, 1, m.To), begins: seconds(m.Start),
			played: m.Work != nil}
		size, _ := m.Bytes.Float64()
		if x.bytes = int(size); size < 0 || size > 1<<40 {
			return fmt.Errorf("message %s has %v bytes", m.Name, size)
		}
		x.engine = x.from.cluster >= 0 && x.to.cluster >= 0 && x.from.cluster != x.to.cluster
		if _, ok := r.network(x); !ok && !x.engine {
			return errNetwork(m.From, m.To)
		}
		if x.engine && r.spread() {
			x.job = (r.index(x.from) + r.index(x.to)) % len(r.p.Zippers)
		}
		pair := [2]*proc{x.from, x.to}
		x.tag = tags[pair] % (1 << 20)
		tags[pair]++
	}
	for i, m := range list {
		for _, k := range m.After {
			r.messages[k].then = append(r.messages[k].then, i)
		}
		for _, k := range m.Sent {
			r.messages[k].sent = append(r.messages[k].sent, i)
		}
		r.messages[i].waits = len(m.After) + len(m.Sent)
	}
	r.share()
	return nil
}

// index returns the index of the host of process p in the host list of its cluster, or 0 if it is
// not there.
func (r *run) index(p *proc) int {
	for i, h := range r.p.Clusters[p.cluster].Hosts.Names {
		if h == p.host {
			return i
		}
	}
	return 0
}

// network returns the name of a cluster on whose network both the sender's and the receiver's host
// are. ok is false if there is none.
func (r *run) network(m *message) (cluster string, ok bool) {
	on := func(p *proc, c string) bool {
		if p.cluster >= 0 {
			return r.p.Clusters[p.cluster].Name == c
		}
		_, ok := r.zipper(p.host).Ports[c]
		return ok
	}
	for _, c := range r.p.Clusters {
		if on(m.from, c.Name) && on(m.to, c.Name) {
			return c.Name, true
		}
	}
	return "", false
}

// post posts the first receives from each sender, for a process that has joined its jobs.
func (p *proc) post() {
	most := 0
	for i := range p.r.messages {
		if m := &p.r.messages[i]; m.engine && (m.to == p || m.from == p) {
			most = max(most, m.bytes)
		}
	}
	p.data = make([]byte, most)
	p.coming = map[*proc][]int{}
	var from []*proc
	for i := range p.r.messages {
		if m := &p.r.messages[i]; m.engine && m.to == p {
			if p.coming[m.from] == nil {
				from = append(from, m.from)
			}
			p.coming[m.from] = append(p.coming[m.from], i)
		}
	}
	for _, o := range from {
		for range ahead {
			p.receive(o)
		}
	}
}

// receive posts the receive of process p for the next message of process from. It does nothing if
// no message is left.
func (p *proc) receive(from *proc) {
	list := p.coming[from]
	if len(list) == 0 {
		return
	}
	i := list[0]
	p.coming[from] = list[1:]
	m, cell := &p.r.messages[i], new(engine.Cell)
	e := p.members[m.job].Engine
	if err := e.Irecv(p.comms[m.job], engine.KindP2P, p.data[:m.bytes], from.virtual, m.tag, cell); err != nil {
		p.r.fail(err)
		return
	}
	p.pending[m.job] = append(p.pending[m.job], operation{cell, func() {
		p.receive(from)
		p.compute()
		p.r.over(i)
	}})
}

// compute spends the processor time that sending or receiving a message takes apart from the
// copying of its bytes.
func (p *proc) compute() {
	c := p.r.p.Zippers[0].Processor.Message.Rat
	if p.cluster >= 0 {
		c = p.r.p.Clusters[p.cluster].Processor.Message.Rat
	}
	p.r.k.Spend(seconds(c))
}

// work starts a thread of the process for each of its jobs, which makes progress in that job until
// the run has failed.
func (p *proc) work() {
	for j := range p.members {
		p.p.Go(func() {
			for p.look(j) {
				p.members[j].Engine.Progress(turn)
			}
		})
	}
}

// look handles the operations of the job with index job that have completed. It returns false once
// the run has failed.
func (p *proc) look(job int) bool {
	r := p.r
	if err := p.members[job].Engine.Err(); err != nil {
		r.fail(fmt.Errorf("%s: %w", p.host, err))
		return false
	}
	list := p.pending[job]
	p.pending[job] = nil // a finished operation may start more
	for _, o := range list {
		switch {
		case !o.cell.Done():
			p.pending[job] = append(p.pending[job], o)
		case o.cell.Err() != nil:
			r.fail(fmt.Errorf("%s: %w", p.host, o.cell.Err()))
		default:
			o.over()
		}
	}
	return r.err == nil
}

// over notes that the message with index i has arrived, and starts the messages that waited for it.
func (r *run) over(i int) {
	m := &r.messages[i]
	m.finish = r.k.Now()
	r.stood(m)
	r.left--
	r.moved = r.k.Now()
	if r.world.Say != nil {
		r.world.Say("%s has arrived: %d bytes after %v", m.Name, m.bytes, m.finish-m.start)
	}
	m.there = true
	m.to.resume()
	r.release(m.then)
}

// markSent notes that the sender has finished with the message with index i, and starts the
// messages that waited for that.
func (r *run) markSent(i int) {
	m := &r.messages[i]
	m.left = true
	m.from.resume()
	r.release(m.sent)
}

// release decrements the counters of the waiting messages with the indices in list, and starts
// those that no longer wait.
func (r *run) release(list []int) {
	for _, k := range list {
		r.messages[k].waits--
		r.launch(k)
	}
}

// launch starts the message with index i if it waits for no other one, unless it is a recorded
// step.
func (r *run) launch(i int) {
	if m := &r.messages[i]; m.waits == 0 && !m.played {
		r.start(i)
	}
}

// start sends the message with index i when its time has come. If that is now and a thread of the
// sender is running, that thread sends it.
func (r *run) start(i int) {
	m := &r.messages[i]
	at := max(r.k.Now(), r.begin+m.begins) + seconds(m.Delay)
	r.moved = max(r.moved, at)
	if at == r.k.Now() && r.k.Running() == m.from.p {
		m.from.send(i)
		return
	}
	r.k.After(at-r.k.Now(), func() { m.from.p.Go(func() { m.from.send(i) }) })
}

func (p *proc) send(i int) {
	r := p.r
	m := &r.messages[i]
	m.start = r.k.Now()
	r.stands(m)
	p.compute()
	if !m.engine {
		r.stream(i)
		return
	}
	cell := new(engine.Cell)
	e := p.members[m.job].Engine
	if err := e.Isend(p.comms[m.job], engine.KindP2P, p.data[:m.bytes], m.to.virtual, m.tag, false, cell); err != nil {
		r.fail(err)
		return
	}
	if cell.Done() && cell.Err() == nil {
		r.markSent(i)
		return
	}
	p.pending[m.job] = append(p.pending[m.job], operation{cell, func() { r.markSent(i) }})
}

// stream starts the transfer of the message with index i over a connection of its own on the
// network that its hosts share, and returns at once: threads of both processes do the work. If both
// hosts are the same, the message takes the time of a copy in memory instead.
func (r *run) stream(i int) {
	m := &r.messages[i]
	if m.from.host == m.to.host {
		takes := time.Duration(0)
		if m.from.cluster >= 0 {
			if rate := number(r.p.Clusters[m.from.cluster].Memory.Rat); rate > 0 {
				takes = time.Duration(float64(m.bytes) / rate * float64(time.Second))
			}
		}
		m.from.p.Go(func() {
			r.k.Sleep(takes)
			r.markSent(i)
			m.to.compute()
			r.over(i)
		})
		return
	}
	cluster, _ := r.network(m)
	out, in := m.from.p.Connect(m.to.p, r.path(m.from.host, m.to.host, cluster))
	m.from.p.Go(func() {
		r.push(m.from, out, m.bytes)
		r.markSent(i)
	})
	m.to.p.Go(func() {
		r.pull(m.to, in, m.bytes)
		in.Close()
		m.to.compute()
		r.over(i)
	})
}

// push writes n bytes of zeros to connection l as process p. It writes one byte if n is 0.
func (r *run) push(p *proc, l *kernel.End, n int) {
	b := make([]byte, chunk)
	sys := kernel.System{Process: p.p}
	for n = max(n, 1); n > 0; {
		k, err := l.TryWrite(b[:min(n, chunk)])
		if errors.Is(err, transport.ErrAgain) {
			sys.Poll([]unix.PollFd{{Fd: int32(l.FD()), Events: unix.POLLOUT}}, standstill, false)
		} else if err != nil {
			r.fail(err)
			return
		}
		n -= k
	}
}

// pull reads n bytes from connection l as process p, and discards them. It reads one byte if n is
// 0.
func (r *run) pull(p *proc, l *kernel.End, n int) {
	b := make([]byte, chunk)
	sys := kernel.System{Process: p.p}
	for n = max(n, 1); n > 0; {
		k, err := l.TryRead(b)
		if errors.Is(err, transport.ErrAgain) {
			sys.Poll([]unix.PollFd{{Fd: int32(l.FD()), Events: unix.POLLIN}}, standstill, false)
		} else if err != nil {
			r.fail(err)
			return
		}
		n -= k
	}
}
