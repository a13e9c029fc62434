package monitor

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/leidenzipper/zipper/forwarder"
	"github.com/leidenzipper/zipper/wire"
)

// collector turns the status into metrics when it is asked.
type collector struct {
	f                                                 Source
	links, jobs, level, queued, trunk, lost, rtt      *prometheus.Desc
	messages, payload, header, frames, passed, placed *prometheus.Desc
}

func registry(f Source) *prometheus.Registry {
	desc := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc("zipper_forwarder_"+name, help, labels, nil)
	}
	// The key is there because several users may have jobs of one id.
	direction := []string{"job", "key", "from", "to"}
	c := &collector{
		f:        f,
		links:    desc("links", "Links that are open."),
		jobs:     desc("jobs", "Jobs by state.", "state"),
		level:    desc("job_level", "1 for each job, by how far it trusts what its frames travel over.", "job", "key", "level"),
		queued:   desc("queued_bytes", "Bytes that wait for destinations which do not take them.", "job", "key"),
		trunk:    desc("trunk_connections", "Connections to another forwarder that are in use; 0: it is cut.", "job", "key", "forwarder"),
		lost:     desc("trunk_lost_total", "Connections to another forwarder that were lost.", "job", "key", "forwarder"),
		rtt:      desc("trunk_round_trip_seconds", "Shortest round trip to another forwarder; 0: unknown.", "job", "key", "forwarder"),
		messages: desc("messages_total", "Messages from one cluster to another.", direction...),
		payload:  desc("payload_bytes_total", "Bytes of the programs' data.", direction...),
		header:   desc("header_bytes_total", "Bytes of headers and control frames.", direction...),
		frames:   desc("frames_total", "Frames.", direction...),
		passed: desc("passed_bytes_total",
			"Bytes of the programs' data that were sent from where they were received, without a copy (over verbs, or through pipes).", direction...),
		placed: desc("placed_bytes_total",
			"Bytes of the programs' data that were written straight into the receiving program's memory (verbs).", direction...),
	}
	r := prometheus.NewRegistry()
	r.MustRegister(c)
	return r
}

// Describe is prometheus.Collector's.
func (c *collector) Describe(ch chan<- *prometheus.Desc) { prometheus.DescribeByCollect(c, ch) }

// Collect is prometheus.Collector's.
func (c *collector) Collect(ch chan<- prometheus.Metric) {
	s := c.f.Status()
	gauge := func(d *prometheus.Desc, v float64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
	}
	count := func(d *prometheus.Desc, v uint64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, float64(v), labels...)
	}
	gauge(c.links, float64(s.Links))
	states := map[string]int{"gathering": 0, "running": 0, "failed": 0}
	for _, j := range s.Jobs {
		states[j.State]++
		gauge(c.level, 1, j.Job, j.Key, j.Level)
		gauge(c.queued, float64(j.QueuedBytes), j.Job, j.Key)
		told := map[string]bool{}
		for _, t := range j.Trunks {
			name := wire.Printable(t.Forwarder)
			if told[name] { // a job may give two forwarders the same address
				continue
			}
			told[name] = true
			gauge(c.trunk, float64(t.Connections), j.Job, j.Key, name)
			count(c.lost, uint64(t.Lost), j.Job, j.Key, name)
			gauge(c.rtt, t.RoundTrip/1e3, j.Job, j.Key, name)
		}
		c.traffic(&j, count)
	}
	for state, n := range states {
		gauge(c.jobs, float64(n), state)
	}
}

func (c *collector) traffic(j *forwarder.JobStatus, count func(*prometheus.Desc, uint64, ...string)) {
	for _, t := range j.Traffic {
		count(c.messages, t.Messages, j.Job, j.Key, t.From, t.To)
		count(c.payload, t.PayloadBytes, j.Job, j.Key, t.From, t.To)
		count(c.header, t.HeaderBytes, j.Job, j.Key, t.From, t.To)
		count(c.frames, t.Frames, j.Job, j.Key, t.From, t.To)
		count(c.passed, t.PassedBytes, j.Job, j.Key, t.From, t.To)
		count(c.placed, t.PlacedBytes, j.Job, j.Key, t.From, t.To)
	}
}
