// Package load puts a forwarder under the load of many simulated ranks in one process: pairs of
// links, one in each of two clusters, that exchange messages. It measures round trips per second,
// latency, fairness between the pairs, the effect on the others of a receiver that stops reading,
// and the forwarder's memory and processor time.
//
// The generator works on the same machine as a local forwarder, and takes its part of the
// processors: rates are those of both together, while processor time per message and memory per
// link are the forwarder's alone.
package load

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/leidenzipper/zipper/bench/stat"
	"github.com/leidenzipper/zipper/handshake"
	"github.com/leidenzipper/zipper/internal/wire"
)

// Options describe a measurement.
type Options struct {
	// Addr is the forwarder's address, host:port.
	Addr string
	// PID is the process id of a forwarder on this host, for memory and processor time; 0: unknown.
	PID int
	// Links is even, and at least 2.
	Links int
	// Size is the payload of a message in bytes.
	Size int
	// Window is the number of messages in flight for each pair in the rate phase.
	Window int
	// Duration is that of each phase.
	Duration time.Duration
	// Slow adds the phase with a receiver that does not read, which needs 4 links.
	Slow bool
	// PerHost is the number of links that claim to be on one host, at least 1.
	PerHost int
	// Job is the job's id.
	Job    string
	Secret string
}

// Row is the result for one number of links.
type Row struct {
	Links int `json:"links"`
	// JoinS is the time until all links had joined, in s.
	JoinS float64 `json:"join_s"`
	// JoinCPU is the forwarder's processor time for that, in s; 0: unknown.
	JoinCPU float64 `json:"join_cpu_s"`
	// JoinKiB is the forwarder's resident set then.
	JoinKiB float64 `json:"join_rss_kib"`
	// JoinSent is the number of bytes that all links received until they had joined.
	JoinSent float64 `json:"join_sent_b"`
	// LeaveS is the time from the first Bye to the last ByeAck, in s.
	LeaveS float64 `json:"leave_s"`
	// LatencyUS is the median one-way time in us while one pair is active and the others are idle.
	LatencyUS float64 `json:"latency_us"`
	// Latency99 is the 99th percentile of that time.
	Latency99 float64 `json:"latency99_us"`
	// LoadedUS is the median one-way time in us while all pairs are active with one message each.
	LoadedUS float64 `json:"loaded_us"`
	// Loaded99 is the 99th percentile of that time.
	Loaded99 float64 `json:"loaded99_us"`
	// Rate is the number of messages relayed per second while all pairs are active with a window.
	Rate float64 `json:"rate"`
	// Jain is the fairness between pairs in that phase: 1 if all are equal, 1/pairs if one has all.
	Jain float64 `json:"jain"`
	// SlowRatio is the rate of the other pairs while one receiver does not read, over their rate
	// before; 0: not measured.
	SlowRatio float64 `json:"slow_ratio"`
	// CPU is the forwarder's processor time per message in the rate phase, in us; 0: unknown.
	CPU float64 `json:"cpu_us"`
	// IdleKiB is the forwarder's resident set after traffic with all links idle, in KiB; 0:
	// unknown.
	IdleKiB float64 `json:"rss_kib"`
	// BeforeKiB is its resident set before the links connected.
	BeforeKiB float64 `json:"rss_before_kib"`
}

// Slope returns the memory per link over rows with different numbers of links, by least squares, in
// KiB. Each row must be of a fresh forwarder. It returns false for fewer than two numbers of links,
// or unknown memory.
func Slope(rows []Row) (float64, bool) {
	var n, sx, sy, sxx, sxy float64
	for _, r := range rows {
		if r.IdleKiB == 0 {
			return 0, false
		}
		x, y := float64(r.Links), r.IdleKiB-r.BeforeKiB
		n, sx, sy, sxx, sxy = n+1, sx+x, sy+y, sxx+x*x, sxy+x*y
	}
	d := n*sxx - sx*sx
	if n < 2 || d == 0 {
		return 0, false
	}
	return (n*sxy - sx*sy) / d, true
}

// world has all links of one job.
type world struct {
	o     Options
	links []*link
	// idle waits for the slow pair's message.
	idle sync.WaitGroup
	// gate stops the slow receiver until it is closed.
	gate chan struct{}
}

// Run measures with one number of links. It returns when the links are closed.
func Run(ctx context.Context, o Options) (Row, error) {
	row := Row{Links: o.Links}
	if o.Links < 2 || o.Links%2 != 0 || o.Size < 0 || o.Size > wire.MaxPayload || o.Window < 1 || o.Duration <= 0 ||
		o.PerHost < 1 {
		return row, fmt.Errorf("load: %d links, %d on a host, messages of %d bytes, window %d, %v: links come in pairs, windows and durations are positive",
			o.Links, o.PerHost, o.Size, o.Window, o.Duration)
	}
	if free := descriptors() - fewOthers; o.Links > free {
		return row, fmt.Errorf("load: %d links, but this process may have %d descriptors open: ulimit -n %d first, or in a shell that may",
			o.Links, free+fewOthers, o.Links+fewOthers)
	}
	row.BeforeKiB = resident(o.PID)
	w := &world{o: o}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	used, start := processor(o.PID), time.Now()
	if err := w.join(ctx); err != nil {
		w.close()
		return row, errors.Join(err, context.Cause(ctx)) // the end of ctx closes the links that join
	}
	row.JoinS = time.Since(start).Seconds()
	if o.PID != 0 {
		row.JoinCPU, row.JoinKiB = processor(o.PID)-used, resident(o.PID)
	}
	for _, l := range w.links {
		row.JoinSent += float64(l.got)
	}
	stop := context.AfterFunc(ctx, w.close) // unblocks all links
	defer stop()
	err := w.measure(ctx, &row)
	if err == nil {
		start = time.Now()
		err = w.leave()
		row.LeaveS = time.Since(start).Seconds()
	}
	w.close()
	return row, errors.Join(err, context.Cause(ctx))
}

func (w *world) measure(ctx context.Context, row *Row) error {
	pairs := w.links[:len(w.links)/2]
	p, err := w.phase(ctx, pairs[:1], 1)
	if err != nil {
		return err
	}
	row.LatencyUS, row.Latency99 = p.median, p.p99
	if p, err = w.phase(ctx, pairs, 1); err != nil {
		return err
	}
	row.LoadedUS, row.Loaded99 = p.median, p.p99
	cpu := processor(w.o.PID)
	if p, err = w.phase(ctx, pairs, w.o.Window); err != nil {
		return err
	}
	row.Rate, row.Jain = p.rate, p.jain
	if p.messages > 0 && w.o.PID != 0 {
		row.CPU = (processor(w.o.PID) - cpu) / p.messages * 1e6
	}
	row.IdleKiB = resident(w.o.PID)
	if w.o.Slow && len(pairs) > 1 {
		before, err := w.phase(ctx, pairs[1:], w.o.Window)
		if err != nil {
			return err
		}
		slow := pairs[0]
		w.idle.Add(1)
		slow.idle, slow.oldest, slow.began[0] = &w.idle, 0, time.Now()
		slow.going.Store(false)
		w.links[slow.peer].slow.Store(true)
		flooded := make(chan error, 1)
		go func() { // in a goroutine, because the forwarder may not take all of it
			err := slow.send(1) // stops the receiver at its gate
			if err == nil {
				err = slow.flush()
			}
			if err == nil {
				err = slow.flood(flood)
			}
			flooded <- err
		}()
		during, err := w.phase(ctx, pairs[1:], w.o.Window)
		w.links[slow.peer].slow.Store(false)
		close(w.gate)
		if err = errors.Join(err, <-flooded); err != nil {
			return err
		}
		w.idle.Wait()
		row.SlowRatio = during.rate / before.rate
	}
	return nil
}

// phase is the result of a phase.
type phase struct {
	messages    float64
	rate, jain  float64
	median, p99 float64 // us
}

func (w *world) phase(ctx context.Context, active []*link, window int) (p phase, err error) {
	var under sync.WaitGroup
	old := make([]int64, len(active))
	for i, l := range active {
		old[i] = l.trips
		l.oldest, l.idle = 0, &under
		l.began = l.began[:window]
		for k := range l.began {
			l.began[k] = time.Now()
		}
		l.going.Store(true)
		under.Add(window)
	}
	start := time.Now()
	for _, l := range active {
		if err := l.send(window); err != nil {
			return p, err
		}
		if err := l.flush(); err != nil {
			return p, err
		}
	}
	select {
	case <-ctx.Done():
		return p, ctx.Err()
	case <-time.After(w.o.Duration):
	}
	for _, l := range active {
		l.going.Store(false)
	}
	done := make(chan struct{})
	go func() { under.Wait(); close(done) }()
	select {
	case <-done:
	case <-ctx.Done():
		return p, ctx.Err()
	case <-time.After(w.o.Duration + patience):
		return p, w.why()
	}
	took := time.Since(start).Seconds()
	counts := make([]float64, len(active))
	var samples []float64
	for i, l := range active {
		n := l.trips - old[i]
		counts[i] = float64(n)
		p.messages += 2 * float64(n)
		for k := range min(n, keep, int64(max(1, mostSamples/len(active)))) {
			samples = append(samples, float64(l.latency[(l.trips-1-k)%keep])/1e3)
		}
	}
	slices.Sort(samples)
	p.rate, p.jain = p.messages/took, stat.Jain(counts)
	p.median, p.p99 = stat.Quantile(samples, 0.5), stat.Quantile(samples, 0.99)
	return p, nil
}

// why returns the error that ended a link, if one has ended.
func (w *world) why() error {
	for _, l := range w.links {
		select {
		case err := <-l.ended:
			return err
		default:
		}
	}
	return errors.New("load: no messages return")
}

func (w *world) join(ctx context.Context) error {
	half := w.o.Links / 2
	layout := []wire.Cluster{{Name: "a", Size: uint32(half)}, {Name: "b", Size: uint32(half)}}
	w.gate = make(chan struct{})
	envelope := wire.Envelope{Size: uint64(w.o.Size)}
	for i := range w.o.Links {
		l := &link{rank: uint32(i), peer: uint32((i + half) % w.o.Links),
			starts: i < half, gate: w.gate, bye: make(chan struct{}), ended: make(chan error, 1)}
		l.frame = append(envelope.Append(make([]byte, wire.HeaderLen, wire.HeaderLen+wire.EnvelopeLen+w.o.Size)),
			make([]byte, w.o.Size)...)
		if l.starts {
			l.began, l.latency = make([]time.Time, w.o.Window), make([]time.Duration, keep)
		}
		w.links = append(w.links, l)
	}
	joined := make(chan error, len(w.links))
	room := make(chan struct{}, atOnce)
	for i, l := range w.links {
		room <- struct{}{} // a link must join at once, because a forwarder waits for the Join only for a time
		c, err := (&net.Dialer{}).DialContext(ctx, "tcp", w.o.Addr)
		if err != nil {
			return err
		}
		l.connected(c)
		defer context.AfterFunc(ctx, func() { c.Close() })()
		go func() {
			c := layout[i/half]
			joined <- l.join(handshake.Identity{Job: w.o.Job, Secret: w.o.Secret, Cluster: c.Name, Rank: i % half,
				Layout: layout, TagUB: 1 << 28,
				Library: "load generator", Model: "none", Host: fmt.Sprintf("load-%05d.cluster.example", i/w.o.PerHost), TimeoutMS: joinTime.Milliseconds()}, func() { <-room })
		}()
	}
	for range w.links {
		if err := <-joined; err != nil {
			return err
		}
	}
	for _, l := range w.links {
		go l.serve()
	}
	return nil
}

func (w *world) leave() error {
	errs := make(chan error)
	for _, l := range w.links {
		go func() { errs <- l.leave(patience) }()
	}
	var err error
	for range w.links {
		if e := <-errs; e != nil && err == nil {
			err = e
		}
	}
	return err
}

func (w *world) close() {
	for _, l := range w.links {
		if l.conn != nil {
			l.conn.Close()
		}
	}
}
