package monitor

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/leidenzipper/zipper/forwarder"
	"github.com/leidenzipper/zipper/forwarder/report"
)

// watch reads a forwarder's status every step, keeps the data for rates, and sends views to its
// subscribers.
type watch struct {
	f       Source
	version string

	mu       sync.Mutex
	now      forwarder.Status
	past     []forwarder.Status // earlier statuses, one for each step, oldest first, from which rates are computed
	rates    []float64          // the rate of the data of all jobs in each step, in bytes per second, oldest first
	watchers map[chan []byte]bool
}

func newWatch(f Source, version string) *watch {
	return &watch{f: f, version: version, watchers: map[chan []byte]bool{}}
}

// View is the data that the status page shows. The page gets a new one in each step.
type View struct {
	Now       time.Time        `json:"now"`
	Started   time.Time        `json:"started"`
	Version   string           `json:"version"`
	Addresses []string         `json:"addresses"`
	Links     int              `json:"links"`
	Kernel    string           `json:"kernel"` // whether the kernel forwards connections between ranks
	Memory    forwarder.Memory `json:"memory"`
	Totals    forwarder.Totals `json:"totals"`
	Step      float64          `json:"step"`  // the time between two views in seconds
	Rates     []float64        `json:"rates"` // bytes of data a second, each step, oldest first
	Jobs      []JobView        `json:"jobs"`  // running ones first
	MoreJobs  int              `json:"more_jobs"`
	Past      []PastView       `json:"past"` // newest first
}

// JobView is a job with its rates: bytes, or messages, per second over the last steps, and over a
// minute.
type JobView struct {
	forwarder.JobStatus
	Rate        float64 `json:"rate"`
	MessageRate float64 `json:"message_rate"`
	MinuteRate  float64 `json:"minute_rate"`
	// the rates of the directions in Traffic, in the same order, in bytes per second
	Rates   []float64 `json:"rates"`
	Limited string    `json:"limited,omitempty"`
}

// PastView is the part of the status page about one job that has ended.
type PastView struct {
	Job     string    `json:"job"`
	User    string    `json:"user,omitempty"`
	Origin  string    `json:"origin,omitempty"`
	Started time.Time `json:"started"`
	Ended   time.Time `json:"ended"`
	OK      bool      `json:"ok"`
	Code    int32     `json:"code"`
	Reason  string    `json:"reason,omitempty"`
}

// run reads the forwarder's status in each step until ctx ends. Then it closes the channels of all
// subscribers.
func (w *watch) run(ctx context.Context) {
	t := time.NewTicker(step)
	defer t.Stop()
	w.look()
	for {
		select {
		case <-ctx.Done():
			w.mu.Lock()
			defer w.mu.Unlock()
			for c := range w.watchers {
				close(c)
			}
			w.watchers = nil
			return
		case <-t.C:
			w.look()
		}
	}
}

// look reads the forwarder's status and sends a view to all subscribers. A subscriber that has not
// taken the last view is skipped.
func (w *watch) look() {
	s := w.f.Status()
	w.mu.Lock()
	defer w.mu.Unlock()
	if last := &w.now; !last.Now.IsZero() {
		w.rates = append(w.rates, per(s.Totals.Traffic.PayloadBytes, last.Totals.Traffic.PayloadBytes,
			s.Now.Sub(last.Now)))
	}
	if len(w.rates) > ratesKept {
		w.rates = slices.Delete(w.rates, 0, 1)
	}
	if w.past = append(w.past, lean(w.now)); len(w.past) > minuteSteps {
		w.past = slices.Delete(w.past, 0, 1)
	}
	w.now = s
	if len(w.watchers) == 0 {
		return
	}
	text := w.view()
	for c := range w.watchers {
		select {
		case c <- text:
		default:
		}
	}
}

// lean returns a status with only those jobs whose rates are shown: those on the page that do not
// gather.
func lean(s forwarder.Status) forwarder.Status {
	list := shown(s.Jobs)
	s.Past, s.Jobs = nil, nil
	for _, j := range list {
		if j.State != "gathering" {
			s.Jobs = append(s.Jobs, *j)
		}
	}
	return s
}

// subscribe returns a channel of views, or nil if there are too many subscribers. leave ends the
// subscription.
func (w *watch) subscribe() (next <-chan []byte, leave func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.watchers == nil || len(w.watchers) >= maxWatchers {
		return nil, nil
	}
	c := make(chan []byte, 1)
	if !w.now.Now.IsZero() {
		c <- w.view()
	}
	w.watchers[c] = true
	return c, func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		delete(w.watchers, c)
	}
}

// kernel returns a text about the connections between ranks that the kernel forwards: whether it
// forwards any, or why not.
func kernel(s *forwarder.Status) string {
	switch {
	case s.NAT && s.NATFailure != "":
		return "forwards no new connections: " + s.NATFailure
	case s.NAT:
		return "forwards connections of ranks"
	}
	return "forwards nothing: " + s.NATOff
}

// view returns the data for the page, as of the last step, as JSON. The caller holds w.mu.
func (w *watch) view() []byte {
	s := &w.now
	v := View{Now: s.Now, Started: s.Started, Version: w.version, Addresses: s.Addresses, Links: s.Links, Kernel: kernel(s),
		Memory: s.Memory,
		Totals: s.Totals, Step: step.Seconds(), Rates: append([]float64{}, w.rates...), Jobs: []JobView{},
		Past: []PastView{}}
	for _, p := range slices.Backward(s.Past) {
		v.Past = append(v.Past, PastView{p.Job, p.User, originOf(p.Clusters), p.Started, p.Ended, p.OK, p.Code,
			p.Reason})
	}
	room := maxView - len(marshal(&v))
	for _, j := range shown(s.Jobs) {
		one := w.job(j, s.Now)
		if room -= len(marshal(&one)); room < 0 {
			break
		}
		v.Jobs = append(v.Jobs, one)
	}
	v.MoreJobs = len(s.Jobs) - len(v.Jobs)
	return marshal(&v)
}

// shown returns the jobs of the page, which shows the first of them that fit into maxView.
func shown(jobs []forwarder.JobStatus) []*forwarder.JobStatus {
	list := foremost(jobs)
	return list[:min(len(list), jobsShown)]
}

// marshal returns the JSON of v, which must be a value that has one.
func marshal(v any) []byte {
	text, err := json.Marshal(v)
	if err != nil {
		panic(err) // unreachable: times and numbers are finite
	}
	return text
}

// job returns what the page shows of job j, with its rates at the time now. The caller holds w.mu.
func (w *watch) job(j *forwarder.JobStatus, now time.Time) JobView {
	v := JobView{JobStatus: *j, Rates: make([]float64, len(j.Traffic))}
	before, then := w.before(j, rateSteps)
	if before == nil {
		return v
	}
	d := now.Sub(then)
	old := map[[2]string]*forwarder.Traffic{}
	for i := range before.Traffic {
		old[[2]string{before.Traffic[i].From, before.Traffic[i].To}] = &before.Traffic[i]
	}
	for i := range j.Traffic {
		t := &j.Traffic[i]
		o := old[[2]string{t.From, t.To}]
		if o == nil {
			o = &forwarder.Traffic{}
		}
		v.Rates[i] = per(t.PayloadBytes, o.PayloadBytes, d)
		v.Rate += v.Rates[i]
		v.MessageRate += per(t.Messages, o.Messages, d)
	}
	if who, part := report.Limiting(j, before, d); who != "" {
		v.Limited = fmt.Sprintf("Limited by %s: its links were full %.0f %% of the time", who, 100*part)
	}
	if long, at := w.before(j, minuteSteps); long != nil {
		v.MinuteRate = per(data(j), data(long), now.Sub(at))
	}
	return v
}

// before returns the state of job j as it was a number of steps ago, or the oldest known one, and
// the time of that state.
func (w *watch) before(j *forwarder.JobStatus, steps int) (*forwarder.JobStatus, time.Time) {
	for k := max(0, len(w.past)-steps); k < len(w.past); k++ {
		for i := range w.past[k].Jobs {
			if o := &w.past[k].Jobs[i]; o.Job == j.Job && o.Key == j.Key && o.State == j.State {
				return o, w.past[k].Now
			}
		}
	}
	return nil, time.Time{}
}

// originOf returns the users and batch jobs of clusters (ClusterStatus.Origin) as one text, without
// duplicates.
func originOf(clusters []forwarder.ClusterStatus) string {
	var list []string
	for _, c := range clusters {
		if c.Origin != "" && !slices.Contains(list, c.Origin) {
			list = append(list, c.Origin)
		}
	}
	return strings.Join(list, "; ")
}

func data(j *forwarder.JobStatus) (n uint64) {
	for i := range j.Traffic {
		n += j.Traffic[i].PayloadBytes
	}
	return n
}

// per returns the rate per second at which a count rose from then to now in the time d. It is 0 if
// the count fell, because a job of the same id has started again.
func per(now, then uint64, d time.Duration) float64 {
	if now < then || d <= 0 {
		return 0
	}
	return float64(now-then) / d.Seconds()
}
