package monitor

import (
	"cmp"
	"runtime"
	"slices"
	"strconv"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"github.com/leidenzipper/zipper/forwarder"
	"github.com/leidenzipper/zipper/internal/wire"
)

// Metrics has the metrics for Prometheus, which docs/reference/metrics.md lists. maxJobs and
// maxPeers bound the number of series, regardless of jobs and strangers, and no label is one that
// Prometheus sets itself (job, instance, le). Totals stay when a job ends.
type Metrics struct {
	registry                    *prometheus.Registry
	waited, length, gather, ran prometheus.Histogram
}

// namespace is the prefix of all names, except for zipper_build_info and those of the process and
// of Go, which are common to all programs.
const namespace = "zipper_forwarder_"

// NewMetrics returns the metrics of a forwarder of a version. The forwarder's configuration must
// have its Meters.
func NewMetrics(version string) *Metrics {
	histogram := func(name, help string, buckets []float64) prometheus.Histogram {
		return prometheus.NewHistogram(prometheus.HistogramOpts{Name: namespace + name, Help: help, Buckets: buckets})
	}
	m := &Metrics{registry: prometheus.NewRegistry(),
		waited: histogram("queue_wait_seconds",
			"Time for which frames were queued, in seconds; frames that were sent at once are not counted.",
			waitBuckets),
		length: histogram("queue_bytes", "Length of a destination's queue after a frame was added to it, in bytes.",
			lengthBuckets),
		gather: histogram("gather_seconds", "Time from a job's first join to its last, in seconds.", gatherBuckets),
		ran:    histogram("job_seconds", "Time for which jobs ran, in seconds.", ranBuckets)}
	info := prometheus.NewGauge(prometheus.GaugeOpts{Name: "zipper_build_info",
		Help: "1, with the forwarder's version as labels.",
		ConstLabels: prometheus.Labels{"version": version, "protocol": strconv.Itoa(wire.Version),
			"goversion": runtime.Version()}})
	info.Set(1)
	m.registry.MustRegister(m.waited, m.length, m.gather, m.ran, info, collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return m
}

// Meters returns the histograms into which a forwarder puts its measurements, for its
// configuration.
func (m *Metrics) Meters() forwarder.Meters {
	return forwarder.Meters{Waited: m.waited, Length: m.length, Gather: m.gather, Ran: m.ran}
}

// of registers the metrics that are computed from the status of forwarder f, and returns the
// registry of all metrics. It must be called once.
func (m *Metrics) of(f Source) *prometheus.Registry {
	m.registry.MustRegister(newCollector(f))
	return m.registry
}

// collector computes metrics from a forwarder's status when Prometheus asks for them.
type collector struct {
	f Source

	links, jobs, ranks, queued, memory, limit            *prometheus.Desc
	accepted, lost, gone, bad, refused, ended, internal  *prometheus.Desc
	messages, payload, header, frames                    *prometheus.Desc
	again, passed, placed, kernelMessages, kernelPayload *prometheus.Desc
	trunk, rtt, trunkLost                                *prometheus.Desc
	info, jobMessages, jobPayload, jobQueued, unlisted   *prometheus.Desc
}

func newCollector(f Source) *collector {
	desc := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc(namespace+name, help, labels, nil)
	}
	one := []string{"zipper_job", "key"} // the key because several users may have jobs of one id
	return &collector{f: f,
		links: desc("links", "Number of open links."),
		jobs: desc("jobs", "Number of jobs by state and level.", "state",
			"level"),
		ranks:    desc("ranks", "Number of ranks of all jobs that have a link."),
		queued:   desc("queued_bytes", "Bytes that are queued for slow destinations."),
		memory:   desc("memory_bytes", "Bytes of received data in memory."),
		limit:    desc("memory_limit_bytes", "Limit of the bytes of received data in memory."),
		accepted: desc("accepted_links_total", "Links that were accepted, or opened to other forwarders."),
		lost:     desc("lost_links_total", "Lost links of ranks in jobs that continued."),
		gone:     desc("lost_clusters_total", "Clusters that were lost by jobs that continued without them."),
		bad:      desc("bad_frames_total", "Damaged frames, and bytes that are no frame."),
		refused:  desc("refused_joins_total", "Refused links by reason.", "reason"),
		ended:    desc("jobs_ended_total", "Ended jobs by result: ok, failed, or incomplete if they never started.", "result"),
		internal: desc("internal_errors_total", "Defects of the forwarder, each of which ended one job; the log has them."),
		messages: desc("messages_total", "Messages between ranks."),
		payload:  desc("payload_bytes_total", "Bytes of the programs' data."),
		header:   desc("header_bytes_total", "Bytes of headers and control frames."),
		frames:   desc("frames_total", "Frames between ranks."),
		again:    desc("resent_frames_total", "Frames between ranks that were retransmitted after the loss of a link."),
		passed: desc("passed_bytes_total",
			"Bytes of the programs' data that were relayed without a copy (over verbs, or through pipes)."),
		placed: desc("placed_bytes_total",
			"Bytes of passed_bytes that were written directly into the receiving program's memory (verbs)."),
		kernelMessages: desc("kernel_messages_total",
			"Messages over connections between ranks that the kernel forwards; not in messages_total. Ranks claim this figure, and the forwarder does not verify it."),
		kernelPayload: desc("kernel_payload_bytes_total",
			"Bytes of the programs' data over such connections; not in payload_bytes_total. Ranks claim this figure, and the forwarder does not verify it."),
		trunk:     desc("trunk_connections", "Connections in use to another forwarder; 0 if the link is cut.", "peer"),
		rtt:       desc("trunk_round_trip_seconds", "Shortest round trip to another forwarder, in seconds; 0 if unknown.", "peer"),
		trunkLost: desc("trunk_connections_lost_total", "Connections to other forwarders that were lost."),
		info: desc("job_info", "1 for each job that has started and not ended, with its owner, state and level as labels.",
			"zipper_job", "key", "user", "origin", "host", "state", "level"),
		jobMessages: desc("job_messages_total", "Messages of a job that has started and not ended.", one...),
		jobPayload:  desc("job_payload_bytes_total", "Bytes of data of a job that has started and not ended.", one...),
		jobQueued: desc("job_queued_bytes", "Bytes of a job that are queued for slow destinations.",
			one...),
		unlisted: desc("jobs_not_listed",
			"Started jobs that have no series of their own because there are too many."),
	}
}

// Describe implements prometheus.Collector.
func (c *collector) Describe(ch chan<- *prometheus.Desc) { prometheus.DescribeByCollect(c, ch) }

// emit is a channel to which metrics are sent for Prometheus.
type emit chan<- prometheus.Metric

func (ch emit) gauge(d *prometheus.Desc, v float64, labels ...string) {
	ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
}

func (ch emit) count(d *prometheus.Desc, v uint64, labels ...string) {
	ch <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, float64(v), labels...)
}

// Collect implements prometheus.Collector.
func (c *collector) Collect(to chan<- prometheus.Metric) {
	s, ch := c.f.Status(), emit(to)
	ch.gauge(c.links, float64(s.Links))
	ch.gauge(c.memory, float64(s.Memory.Used))
	ch.gauge(c.limit, float64(s.Memory.Limit))
	t := &s.Totals
	ch.count(c.accepted, t.Links)
	ch.count(c.lost, t.LostLinks)
	ch.count(c.gone, t.Lost)
	ch.count(c.bad, t.BadFrames)
	ch.count(c.trunkLost, t.LostTrunks)
	for reason, n := range t.Refused {
		ch.count(c.refused, n, reason)
	}
	ch.count(c.ended, t.OK, "ok")
	ch.count(c.ended, t.Failed, "failed")
	ch.count(c.ended, t.Incomplete, "incomplete")
	ch.count(c.internal, t.Internal)
	ch.count(c.messages, t.Traffic.Messages)
	ch.count(c.payload, t.Traffic.PayloadBytes)
	ch.count(c.header, t.Traffic.HeaderBytes)
	ch.count(c.frames, t.Traffic.Frames)
	ch.count(c.again, t.Traffic.ResentFrames)
	ch.count(c.passed, t.Traffic.PassedBytes)
	ch.count(c.placed, t.Traffic.PlacedBytes)
	ch.count(c.kernelMessages, t.Kernel.Messages)
	ch.count(c.kernelPayload, t.Kernel.PayloadBytes)
	c.sums(&s, ch)
	c.eachJob(s.Jobs, ch)
}

// sums sends ch the metrics that are sums over all jobs that have not ended.
func (c *collector) sums(s *forwarder.Status, ch emit) {
	ranks, queued := 0, 0
	jobs := map[[2]string]int{}
	for _, state := range []string{"gathering", "running", "failed"} {
		for l := wire.LevelPlain; l <= wire.LevelSealed; l++ {
			jobs[[2]string{state, l.String()}] = 0
		}
	}
	peers := map[string]*forwarder.TrunkStatus{}
	for i := range s.Jobs {
		j := &s.Jobs[i]
		jobs[[2]string{j.State, j.Level}]++
		ranks += j.Joined
		queued += j.QueuedBytes
		for k := range j.Trunks {
			t := &j.Trunks[k]
			name := wire.Printable(t.Forwarder)
			if peers[name] == nil && len(peers) >= maxPeers { // jobs name them
				name = "(others)"
			}
			if p := peers[name]; p == nil {
				one := *t
				peers[name] = &one
			} else {
				p.Connections += t.Connections
				if t.RoundTrip > 0 && (p.RoundTrip == 0 || t.RoundTrip < p.RoundTrip) {
					p.RoundTrip = t.RoundTrip
				}
			}
		}
	}
	ch.gauge(c.ranks, float64(ranks))
	ch.gauge(c.queued, float64(queued))
	for key, n := range jobs {
		ch.gauge(c.jobs, float64(n), key[0], key[1])
	}
	for name, t := range peers {
		ch.gauge(c.trunk, float64(t.Connections), name)
		ch.gauge(c.rtt, t.RoundTrip/1e3, name)
	}
}

// eachJob sends ch the metrics of single jobs: those that started first, so that a job keeps its
// series until it ends.
func (c *collector) eachJob(jobs []forwarder.JobStatus, ch emit) {
	jobs = slices.DeleteFunc(slices.Clone(jobs), func(j forwarder.JobStatus) bool { return j.State == "gathering" })
	slices.SortStableFunc(jobs, func(a, b forwarder.JobStatus) int {
		return cmp.Or(a.Started.Compare(b.Started), cmp.Compare(a.Job, b.Job), cmp.Compare(a.Key, b.Key))
	})
	listed := min(len(jobs), maxJobs)
	ch.gauge(c.unlisted, float64(len(jobs)-listed))
	for i := range jobs[:listed] {
		j := &jobs[i]
		id := wire.Printable(j.Job)
		host := ""
		if len(j.Clusters) > 0 {
			host = wire.Printable(j.Clusters[0].Host)
		}
		ch.gauge(c.info, 1, id, j.Key, wire.Printable(j.User), wire.Printable(originOf(j.Clusters)), host, j.State,
			j.Level)
		ch.gauge(c.jobQueued, float64(j.QueuedBytes), id, j.Key)
		var sum forwarder.Traffic
		for k := range j.Traffic {
			sum.Messages += j.Traffic[k].Messages
			sum.PayloadBytes += j.Traffic[k].PayloadBytes
		}
		ch.count(c.jobMessages, sum.Messages, id, j.Key)
		ch.count(c.jobPayload, sum.PayloadBytes, id, j.Key)
	}
}
