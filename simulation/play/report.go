package play

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/leidenzipper/zipper/contention/predict"
	"github.com/leidenzipper/zipper/contention/quantity"
	"github.com/leidenzipper/zipper/simulation/kernel"
)

// stand is how long packets had waited in a queue that a message passes when it began.
type stand struct {
	line   *kernel.Line
	key    string
	waited time.Duration
	during time.Duration // until it was there
}

// measure notes where resources stand before the first message.
func (r *run) measure() {
	r.used = map[string]time.Duration{}
	for _, l := range r.order {
		r.used[l.Name] = l.Busy
	}
	for name, h := range r.hosts {
		r.used[name] = h.Used
	}
}

// stands notes where the queues stand that a message passes.
func (r *run) stands(m *message) {
	add := func(w *kernel.Way) {
		for _, p := range w.Lines {
			if !slices.ContainsFunc(m.stands, func(s stand) bool { return s.line == p.Line && s.key == p.Key }) {
				m.stands = append(m.stands, stand{line: p.Line, key: p.Key, waited: p.Line.Waited(p.Key)})
			}
		}
	}
	if !m.engine {
		if c, _ := r.network(m); m.From != m.To {
			add(r.way(m.From, m.To, c))
		}
		return
	}
	for i := range r.p.Zippers {
		z := &r.p.Zippers[i]
		if r.spread() && i != m.job {
			continue
		}
		in, out := r.p.Clusters[m.from.cluster].Name, r.p.Clusters[m.to.cluster].Name
		if _, ok := z.Ports[in]; ok {
			add(r.way(m.From, z.Name, in))
		}
		if _, ok := z.Ports[out]; ok {
			add(r.way(z.Name, m.To, out))
		}
	}
}

// stood notes how long was waited there meanwhile.
func (r *run) stood(m *message) {
	for i := range m.stands {
		s := &m.stands[i]
		s.during = s.line.Waited(s.key) - s.waited
	}
}

func (r *run) result() *Result {
	x := &Result{Started: r.begin - settle, Steps: r.k.Steps(), Faults: r.done}
	p := &predict.Report{Platform: r.p.Name, Rule: "simulation", Events: int(r.k.Steps())}
	waiting, all := map[*kernel.Line]time.Duration{}, time.Duration(0)
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
				t.Limits = append(t.Limits, predict.Share{Resource: s.line.Name, Share: float64(s.during) / float64(sum)})
			}
			waiting[s.line] += s.during
			all += s.during
		}
		slices.SortStableFunc(t.Limits, func(a, b predict.Share) int { return cmp.Compare(b.Share, a.Share) })
		p.Messages = append(p.Messages, t)
		p.Makespan = max(p.Makespan, t.Finish)
	}
	best := 0.0
	for _, l := range r.order {
		busy := (l.Busy - r.used[l.Name]).Seconds()
		if busy == 0 && waiting[l] == 0 {
			continue
		}
		y := predict.Resource{Name: l.Name, Kind: r.kinds[l], Capacity: l.Rate, Utilisation: min(1, busy/p.Makespan)}
		if all > 0 {
			y.Limiting = float64(waiting[l]) / float64(all)
		}
		if y.Limiting > best {
			best, p.Bottleneck = y.Limiting, y.Name
		}
		p.Resources = append(p.Resources, y)
	}
	for _, f := range r.forwarders {
		h := r.hosts[f.Addr]
		busy := (h.Used - r.used[f.Addr]).Seconds() / p.Makespan
		p.Resources = append(p.Resources, predict.Resource{Name: f.Addr + ".cpu", Kind: "thread",
			Capacity: float64(h.Cores), Utilisation: busy / float64(h.Cores)})
		x.Forwarders = append(x.Forwarders, r.told(f.Addr, busy))
	}
	x.Report = p
	return x
}

// told is what a forwarder has counted, of all its jobs.
func (r *run) told(name string, busy float64) Forwarder {
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

// Stats writes what `zipper run --stats` does, in virtual time.
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
