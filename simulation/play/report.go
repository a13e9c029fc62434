package play

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/leidenzipper/zipper/contention/predict"
	"github.com/leidenzipper/zipper/contention/quantity"
)

// stand measures for how long packets waited at one resource, a line or a host's processors, while
// a message was under way.
type stand struct {
	resource string // name of the line, or of the host with the suffix of processors
	key      string // key of the queue, or the host that sent the packets
	// waited returns the total waiting time of packets with a key so far.
	waited func(key string) time.Duration
	before time.Duration // total waiting time when the message began
	during time.Duration // waiting time while the message was under way
}

// measure records in run.used for how long each line and each host's processors have been in use
// before the first message.
func (r *run) measure() {
	r.used = map[string]time.Duration{}
	for _, l := range r.order {
		r.used[l.Name] = l.Busy
	}
	for name, h := range r.hosts {
		r.used[name] = h.Used
	}
}

// stands records for how long packets have waited so far at each resource that message m passes,
// when m begins.
func (r *run) stands(m *message) {
	add := func(resource, key string, waited func(string) time.Duration) {
		if !slices.ContainsFunc(m.stands, func(s stand) bool { return s.resource == resource && s.key == key }) {
			m.stands = append(m.stands, stand{resource: resource, key: key, waited: waited, before: waited(key)})
		}
	}
	pass := func(from, to, network string) {
		for _, p := range r.way(from, to, network).Lines {
			add(p.Line.Name, p.Key, p.Line.Waited)
		}
		add(to+processors, from, r.hosts[to].Late)
	}
	if !m.engine {
		if c, _ := r.network(m); m.From != m.To {
			pass(m.From, m.To, c)
		}
		return
	}
	if z := r.translator(m.from, m.to); z != nil {
		for _, p := range r.past(m.from, m.to, z).Lines {
			add(p.Line.Name, p.Key, p.Line.Waited)
		}
		add(m.To+processors, m.From, r.hosts[m.To].Late)
		return
	}
	for i := range r.p.Zippers {
		z := &r.p.Zippers[i]
		if r.spread() && i != m.job {
			continue
		}
		in, out := r.p.Clusters[m.from.cluster].Name, r.p.Clusters[m.to.cluster].Name
		if _, ok := z.Ports[in]; ok {
			pass(m.From, z.Name, in)
		}
		if _, ok := z.Ports[out]; ok {
			pass(z.Name, m.To, out)
		}
	}
}

// processors is the suffix of the names of resources that are a host's processors.
const processors = ".cpu"

// stood sets the waiting times of message m, which has arrived, at the resources that it passed.
func (r *run) stood(m *message) {
	for i := range m.stands {
		s := &m.stands[i]
		s.during = s.waited(s.key) - s.before
	}
}

func (r *run) result() *Result {
	x := &Result{Started: r.begin - settle, Steps: r.k.Steps(), Faults: r.done}
	p := &predict.Report{Platform: r.p.Name, Rule: "simulation", Events: int(r.k.Steps())}
	waiting, all := map[string]time.Duration{}, time.Duration(0)
	for i := range r.messages {
		m := &r.messages[i]
		t := predict.Message{Name: m.Name, From: m.From, To: m.To, Bytes: float64(m.bytes),
			Start: (m.start - r.begin).Seconds(), Finish: (m.finish - r.begin).Seconds()}
		if t.Finish > t.Start {
			t.Rate = t.Bytes / (t.Finish - t.Start)
		}
		sum := time.Duration(0)
		for _, s := range m.stands {
			sum += s.during
		}
		for _, s := range m.stands {
			if s.during > 0 {
				t.Limits = append(t.Limits, predict.Share{Resource: s.resource, Share: float64(s.during) / float64(sum)})
			}
			waiting[s.resource] += s.during
			all += s.during
		}
		slices.SortStableFunc(t.Limits, func(a, b predict.Share) int { return cmp.Compare(b.Share, a.Share) })
		p.Messages = append(p.Messages, t)
		p.Makespan = max(p.Makespan, t.Finish)
	}
	best := time.Duration(0)
	add := func(y predict.Resource) {
		if w := waiting[y.Name]; w > 0 {
			y.Limiting = float64(w) / float64(all)
			if w > best {
				best, p.Bottleneck = w, y.Name
			}
		}
		p.Resources = append(p.Resources, y)
	}
	for _, l := range r.order {
		if busy := (l.Busy - r.used[l.Name]).Seconds(); busy > 0 || waiting[l.Name] > 0 {
			add(predict.Resource{Name: l.Name, Kind: r.kinds[l], Capacity: l.Rate, Utilisation: min(1, busy/p.Makespan)})
		}
	}
	thread := func(host string) (busy float64) {
		h := r.hosts[host]
		busy = (h.Used - r.used[host]).Seconds() / p.Makespan
		add(predict.Resource{Name: host + processors, Kind: "thread", Capacity: float64(h.Cores),
			Utilisation: busy / float64(h.Cores)})
		return busy
	}
	for _, f := range r.forwarders {
		x.Forwarders = append(x.Forwarders, r.counters(f.Addr, thread(f.Addr)))
	}
	for i := range r.p.Clusters {
		for _, h := range r.p.Clusters[i].Hosts.Names {
			if waiting[h+processors] > 0 {
				thread(h)
			}
		}
	}
	for name, h := range r.hosts {
		x.Used += h.Used - r.used[name]
	}
	x.Report = p
	return x
}

// counters returns the counters of the forwarder of zipper name, summed over its jobs. busy is its
// mean number of busy processors.
func (r *run) counters(name string, busy float64) Forwarder {
	x := Forwarder{Name: name, Busy: busy}
	for _, f := range r.forwarders {
		if f.Addr != name {
			continue
		}
		for _, j := range f.Status().Jobs {
			for _, t := range j.Traffic {
				x.add(Traffic{t.From, t.To, t.Messages, t.PayloadBytes, t.HeaderBytes, t.ResentFrames})
			}
		}
	}
	return x
}

func (f *Forwarder) add(t Traffic) {
	for i := range f.Traffic {
		if o := &f.Traffic[i]; o.From == t.From && o.To == t.To {
			o.Messages += t.Messages
			o.Bytes += t.Bytes
			o.Headers += t.Headers
			o.Repeated += t.Repeated
			return
		}
	}
	f.Traffic = append(f.Traffic, t)
}

// Stats writes the forwarders' counters as text, in the lines that `zipper run --stats` prints for
// a real job.
func (x *Result) Stats(w io.Writer) {
	fmt.Fprintf(w, "zipper: gathered in %v, %s of messages, in virtual time\n", x.Started.Round(time.Microsecond),
		quantity.FormatTime(x.Report.Makespan))
	for _, f := range x.Forwarders {
		for _, t := range f.Traffic {
			fmt.Fprintf(w, "zipper: %s: %s -> %s: %d messages, %d bytes of data, %d bytes of headers and control", f.Name,
				t.From, t.To, t.Messages, t.Bytes, t.Headers)
			if t.Repeated > 0 {
				fmt.Fprintf(w, ", %d frames sent again", t.Repeated)
			}
			fmt.Fprintln(w)
		}
	}
	for _, f := range x.Faults {
		fmt.Fprintf(w, "zipper: fault: %s\n", f)
	}
}
