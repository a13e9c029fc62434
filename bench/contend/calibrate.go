package contend

import (
	"context"
	"fmt"
	"slices"

	"github.com/leidenzipper/zipper/bench/transfer"
	"github.com/leidenzipper/zipper/contention/calibrate"
	"github.com/leidenzipper/zipper/contention/fit"
	"github.com/leidenzipper/zipper/contention/pattern"
	"github.com/leidenzipper/zipper/internal/transport/tcp"
)

// Options are the options of a calibration.
type Options struct {
	// Bytes is the size of a message, so large that start and buffers do not count.
	Bytes int
	// Most is the largest number of repetitions, at least 2. A measurement ends earlier when the 95
	// % interval is within Within of the mean.
	Most int
	// Within is the half width of that interval as a part of the mean; usually 0.02.
	Within float64
	// Quick measures rates only: no latencies, busy hosts, both directions at once, graphs,
	// stripes, memory or processor times.
	Quick bool
	// Say, if not nil, is called with each step.
	Say func(string)
}

// Calibrate measures a site in the order that package calibrate describes. Only the current pattern
// is on the network, and except in the graphs never more messages at a time than a cluster has
// hosts.
func Calibrate(ctx context.Context, s *Site, o Options) (calibrate.Samples, error) {
	m := &measurer{ctx: ctx, site: s, Options: o}
	out := calibrate.Samples{Name: s.Name, Packet: s.Packet, Burst: s.Burst, Machine: s.Machine}
	for i := range s.Clusters {
		c, err := m.cluster(i)
		if err != nil {
			return out, fmt.Errorf("cluster %s: %w", s.Clusters[i].Name, err)
		}
		out.Clusters = append(out.Clusters, c)
	}
	for k := range s.Zippers {
		z, err := m.zipper(k)
		if err != nil {
			return out, fmt.Errorf("zipper %s: %w", s.Zippers[k].Name, err)
		}
		out.Zippers = append(out.Zippers, z)
	}
	if o.Quick {
		return out, nil
	}
	var err error
	if s.Machine > 0 && len(s.Clusters) > 1 && len(s.Zippers) > 0 {
		if out.Links, err = m.links(&out); err != nil {
			return out, fmt.Errorf("links: %w", err)
		}
	}
	if len(s.Zippers) < 2 {
		return out, nil
	}
	out.Striped, err = m.striped()
	return out, err
}

type measurer struct {
	Options
	ctx  context.Context
	site *Site
	// background is the processor time in busyTime when nothing is measured, in seconds.
	background float64
}

// rates repeats messages(turn) until the rate is known well enough, but three times at least and
// Most times at most; rate turns the times into the sample. The end of the context is an error.
func (m *measurer) rates(what string, messages func(turn int) []transfer.Message,
	rate func(seconds []float64) float64) ([]float64, error) {
	if m.Say != nil {
		m.Say(what)
	}
	var samples []float64
	for turn := range m.Most {
		if err := context.Cause(m.ctx); err != nil {
			return nil, err
		}
		seconds, err := m.site.Session.Run(messages(turn))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", what, err)
		}
		samples = append(samples, rate(seconds))
		if len(samples) >= 3 && fit.Enough(samples, m.Within) {
			break
		}
	}
	return samples, nil
}

// first returns the rate of the first message.
func (m *measurer) first(seconds []float64) float64 { return float64(m.Bytes) / seconds[0] }

// latencies returns medians of small messages, because a message that a host's scheduler delayed is
// no measure of the network.
func (m *measurer) latencies(what string, messages func(turn int) []transfer.Message) ([]float64, error) {
	small := func(turn int) []transfer.Message {
		x := messages(turn)
		x[0].Bytes = 1
		return x
	}
	var list []float64
	for turn := range min(m.Most, 4) {
		few := measurer{ctx: m.ctx, site: m.site, Options: Options{Most: latencySamples, Within: -1}}
		if turn == 0 {
			few.Say = m.Say
		}
		times, err := few.rates(what, func(int) []transfer.Message { return small(turn) },
			func(seconds []float64) float64 { return seconds[0] })
		if err != nil {
			return nil, err
		}
		slices.Sort(times)
		list = append(list, times[latencySamples/2])
	}
	return list, nil
}

// all returns the rate of all messages together while the slowest ran.
func (m *measurer) all(seconds []float64) float64 {
	longest := 0.0
	for _, t := range seconds {
		longest = max(longest, t)
	}
	return float64(m.Bytes) * float64(len(seconds)) / longest
}

func (m *measurer) message(from, to string, via int) transfer.Message {
	return transfer.Message{From: from, To: to, Via: via, Bytes: m.Bytes}
}

// cluster carries out steps 1 and 2.
func (m *measurer) cluster(i int) (out calibrate.Cluster, err error) {
	c := m.site.Clusters[i]
	n := len(c.Hosts)
	out = calibrate.Cluster{Name: c.Name, Hosts: c.Hosts, Cores: c.Cores}
	if n < 2 {
		return out, fmt.Errorf("%d hosts; two are needed to measure an adapter", n)
	}
	// Every turn has other hosts, so that their spread belongs to the interval.
	pair := func(turn int) (from, to string) { return c.Hosts[turn%n], c.Hosts[(turn+1)%n] }
	lone := func(turn int) []transfer.Message {
		from, to := pair(turn)
		return []transfer.Message{m.message(from, to, transfer.Direct)}
	}
	if out.Lone, err = m.rates("lone message in "+c.Name, lone, m.first); err != nil {
		return out, err
	}
	if m.Quick {
		return out, nil
	}
	for _, h := range c.Hosts[:2] {
		x, err := m.site.Session.Costs(h)
		if err != nil {
			return out, err
		}
		out.Costs = append(out.Costs, x)
	}
	if out.Latency, err = m.latencies("latency in "+c.Name, lone); err != nil {
		return out, err
	}
	if n < 4 {
		return out, nil
	}
	out.OutAlone = out.Lone
	busy := func(turn int) []transfer.Message {
		from, to := pair(turn)
		list := []transfer.Message{m.message(from, to, transfer.Direct)}
		for k := 2; k < n; k++ { // the others send to the sender
			list = append(list, m.message(c.Hosts[(turn+k)%n], from, transfer.Direct))
		}
		return list
	}
	if out.OutBusy, err = m.rates("out of a busy host in "+c.Name, busy, m.first); err != nil {
		return out, err
	}
	for _, g := range calibrate.Graphs() {
		if g.Hosts <= n {
			x, err := m.graph(c, g)
			if err != nil {
				return out, err
			}
			out.Graphs = append(out.Graphs, x)
		}
	}
	return out, nil
}

// graph carries out step 3: the messages of a graph, a quarter as long as others because there are
// many, between other hosts in every turn.
func (m *measurer) graph(c Cluster, g calibrate.Graph) (out calibrate.Timed, err error) {
	few := *m
	few.Bytes = max(1, m.Bytes/4)
	out = calibrate.Timed{Graph: g, Bytes: few.Bytes}
	messages := func(turn int) (list []transfer.Message) {
		for _, e := range g.Edges {
			list = append(list, few.message(c.Hosts[(turn+e.From)%len(c.Hosts)], c.Hosts[(turn+e.To)%len(c.Hosts)],
				transfer.Direct))
		}
		return list
	}
	_, err = few.rates(g.Name+" in "+c.Name, messages, func(seconds []float64) float64 {
		out.Seconds = append(out.Seconds, seconds)
		return few.all(seconds)
	})
	return out, err
}

// striped carries out step 6: messages that would all take the first zipper if each pair of hosts
// took one in turn, in a job that has all zippers.
func (m *measurer) striped() (out calibrate.Striped, err error) {
	a, b, z := m.site.Clusters[0], m.site.Clusters[1], len(m.site.Zippers)
	for i := range min(z, len(a.Hosts)) {
		if k := (z - i) % z; k < len(b.Hosts) {
			out.Pairs = append(out.Pairs, [2]string{a.Hosts[i], b.Hosts[k]})
		}
	}
	out.Bytes, out.Min = m.Bytes, pattern.Segment
	err = m.site.Session.Together(func(via int) error {
		messages := func(int) (list []transfer.Message) {
			for _, p := range out.Pairs {
				list = append(list, m.message(p[0], p[1], via))
			}
			return list
		}
		out.Rates, err = m.rates("over all zippers", messages, m.all)
		return err
	})
	return out, err
}

// zipper carries out steps 1, 4 and 5.
func (m *measurer) zipper(k int) (out calibrate.Zipper, err error) {
	z, cs := m.site.Zippers[k], m.site.Clusters
	out = calibrate.Zipper{Name: z.Name, Cores: z.Cores, Eager: pattern.Eager, Segment: pattern.Segment, Bytes: m.Bytes,
		Socket: tcp.Unsent + m.site.InFlight, In: map[string][]float64{}, Out: map[string][]float64{},
		Single: map[string][]float64{}, Both: map[string][]float64{}, Many: map[string][]float64{}}
	for range m.Most {
		if m.Quick {
			break
		}
		rate, err := m.site.Session.CopyRate(z.Name)
		if err != nil {
			return out, err
		}
		out.Copies = append(out.Copies, rate)
	}
	if !m.Quick {
		x, err := m.site.Session.Costs(z.Name)
		if err != nil {
			return out, err
		}
		out.Costs = append(out.Costs, x)
	}
	host := func(c, turn int) string { return cs[c].Hosts[turn%len(cs[c].Hosts)] }
	for c := range cs {
		// All hosts send at once: a single one shows its own adapter if that is slower than the
		// port.
		in := func(int) (list []transfer.Message) {
			for _, h := range cs[c].Hosts {
				list = append(list, m.message(h, z.Name, transfer.Direct))
			}
			return list
		}
		if out.In[cs[c].Name], err = m.rates("from "+cs[c].Name+" into "+z.Name, in, m.all); err != nil {
			return out, err
		}
		back := func(int) (list []transfer.Message) {
			for _, h := range cs[c].Hosts {
				list = append(list, m.message(z.Name, h, transfer.Direct))
			}
			return list
		}
		if out.Out[cs[c].Name], err = m.rates("out of "+z.Name+" to "+cs[c].Name, back, m.all); err != nil {
			return out, err
		}
	}
	for a := range cs {
		for b := range cs {
			if a == b {
				continue
			}
			d := cs[a].Name + ">" + cs[b].Name
			one := func(turn int) []transfer.Message {
				return []transfer.Message{m.message(host(a, turn), host(b, turn), k)}
			}
			if out.Single[d], err = m.rates(d+" through "+z.Name, one, m.first); err != nil {
				return out, err
			}
			both := func(turn int) []transfer.Message {
				return append(one(turn), m.message(host(b, turn+1), host(a, turn+1), k))
			}
			if !m.Quick {
				times, err := m.latencies("latency "+d+" through "+z.Name, one)
				if err != nil {
					return out, err
				}
				for _, t := range times {
					out.Through = append(out.Through, t)
					out.Handshake = append(out.Handshake, 2*t) // the announcement, the go-ahead
				}
				if out.Both[d], err = m.rates(d+" and back through "+z.Name, both, m.first); err != nil {
					return out, err
				}
			}
			many := func(turn int) (list []transfer.Message) {
				for i := range min(len(cs[a].Hosts), len(cs[b].Hosts)) {
					list = append(list, m.message(host(a, i), host(b, i+turn), k))
				}
				return list
			}
			if out.Many[d], err = m.rates("many "+d+" through "+z.Name, many, m.all); err != nil {
				return out, err
			}
		}
	}
	return out, nil
}
