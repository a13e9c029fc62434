package submit

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/leidenzipper/zipper/launch/together"
)

// Together begins the halves of a job at the same time. It looks at them until all run, and tells
// the user meanwhile for what each of them waits.
type Together struct {
	// Job is the job's id.
	Job      string
	Settings together.Settings
	// Log is where changes are reported to, a line each.
	Log io.Writer
	// Notify is a command for a shell that gets the reports for a user on its standard input; it is
	// empty if there is none.
	Notify string

	halves  []*Half
	machine *together.Machine
	began   time.Time
	sites   []site
	// phases are the last reports on the halves, without times.
	phases []string
	// attempts is the number of attempts that have been reported.
	attempts int
	// reserved tells which halves have a reservation.
	reserved []bool
}

// site is the controller's knowledge of a half's cluster.
type site struct {
	// zone is the difference between the cluster's local time, in seconds, and the time since the
	// controller has begun. It is fixed at the first answer, so that a time there always means the
	// same time here.
	zone  int64
	zoned bool
	// away is the time since when the cluster does not answer, and failure the last error.
	away    time.Time
	failure error
	seen    together.Seen
}

// Gate returns the part of a half's batch script that waits until all halves run. Its bound ends a
// half whose controller has ended, or does not reach the cluster. A half that cannot begin here
// ends at once, before the other one waits for it.
func Gate(idleLimit time.Duration) func(h *Half) string {
	return func(h *Half) string { return h.gate(seconds(idleLimit + gateSlack)) }
}

// gate returns the part of the half's script that waits, for at most a number of seconds.
func (h *Half) gate(bound int) string {
	return fmt.Sprintf(`command -v %[4]s >/dev/null || {
  echo "zipper: there is no "%[4]s" on $(hostname): install zipper there, or say where it is (zipper: in the job file)"
  exit 1
}
d=$HOME/%[1]s
n=0
until [ "$(cat "$d/%[2]s.go")" = go ]; do
  n=$((n+1))
  [ -e "$d/%[2]s.go" ] || exit
  if [ $n -gt %[3]d ]; then
    echo "zipper: no word from zipper submit for %[3]d s: it has ended, or does not reach this cluster; submit the job again"
    exit 1
  fi
  sleep 1
done
`, h.dir, h.Cluster.Name, bound, h.zipper())
}

// Begin submits the halves and returns when all of them run and go on, so that Watch can follow
// them. If it returns an error, it has cancelled all halves and removed their files, or the error
// names those that are left. The end of ctx cancels all halves; the error is that of ctx if none is
// left.
func (t *Together) Begin(ctx context.Context, halves []*Half) error {
	t.halves, t.began = halves, time.Now()
	t.sites, t.phases, t.reserved = make([]site, len(halves)), make([]string, len(halves)), make([]bool, len(halves))
	err := t.begin(ctx)
	t.unreserve()
	t.clearStatus()
	if err == nil {
		return nil
	}
	if ctx.Err() == nil {
		t.logLine(err.Error())
	}
	left := Cancel(halves)
	if ctx.Err() != nil {
		return cmp.Or(left, ctx.Err())
	}
	err = errors.Join(err, left)
	t.tell("the halves do not begin together: " + err.Error())
	return err
}

func (t *Together) begin(ctx context.Context) error {
	for _, h := range t.halves {
		if err := h.Submit(ctx, together.Bound(0)); err != nil {
			return fmt.Errorf("%w; correct the options under batch: of this cluster, or submit again when it answers", err)
		}
		t.log(h, "submitted as "+h.Name()+on(h.Where()))
	}
	t.machine = together.New(len(t.halves), t.now(), t.Settings)
	for {
		t.look()
		now := t.now()
		for _, a := range t.machine.Look(now, t.seen()) {
			switch a.Kind {
			case together.Fail:
				return t.failure(a)
			case together.Commit:
				return t.commit(ctx)
			}
			t.act(a, now)
		}
		t.report(now)
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(t.pause()):
		}
	}
}

// now returns the machine's time.
func (t *Together) now() time.Duration { return time.Since(t.began) }

// pause returns the time until the next look, which is short while a half waits on its nodes.
func (t *Together) pause() time.Duration {
	for i := range t.sites {
		if t.sites[i].seen.State == together.Running {
			return lookTime
		}
	}
	return queueTime
}

// each does something for all halves at the same time.
func (t *Together) each(do func(i int, h *Half)) {
	var all sync.WaitGroup
	for i, h := range t.halves {
		all.Go(func() { do(i, h) })
	}
	all.Wait()
}

// look asks all batch systems.
func (t *Together) look() {
	t.each(func(i int, h *Half) {
		s := &t.sites[i]
		out, err := h.here(context.Background(), fmt.Sprintf("d=$HOME/%s\ndate -u -d \"$(date +'%%F %%T')\" +'ZIPPER-NOW %%s'\n%s\n",
			h.dir, h.system.show(h.ID, h.Cluster.Name+".sh")))
		if err == nil {
			err = s.learn(h, out, t.now())
		}
		if s.failure = err; err == nil {
			s.away = time.Time{}
			return
		}
		if s.seen = (together.Seen{}); s.away.IsZero() {
			s.away = time.Now()
		}
	})
}

// learn reads the answer of the half's batch system.
func (s *site) learn(h *Half, text string, now time.Duration) error {
	var clock int64
	if _, err := fmt.Sscanf(text, "ZIPPER-NOW %d", &clock); err != nil {
		return fmt.Errorf("cluster %s does not tell its time: %s", h.Cluster.Name, strings.TrimSpace(text))
	}
	_, text, _ = strings.Cut(text, "\n")
	a, err := h.system.read(h.ID, text)
	if err != nil {
		return fmt.Errorf("cluster %s: %w", h.Cluster.Name, err)
	}
	h.now = a
	if zone := clock - int64(now/time.Second); !s.zoned || max(zone-s.zone, s.zone-zone) > maxDrift {
		s.zone, s.zoned = zone, true
	}
	s.seen = s.translate(a, clock)
	return nil
}

// translate returns the machine's form of an answer that was given at a time.
func (s *site) translate(a answer, clock int64) (seen together.Seen) {
	here := func(at int64) time.Duration {
		if at == 0 {
			return together.Never
		}
		return time.Duration(at-s.zone) * time.Second
	}
	switch a.phase {
	case started:
		seen.State = together.Running
	case over:
		seen.State = together.Ended
	case queued:
		seen.State = together.Waiting
		seen.Deferred, seen.Begin = a.held || a.begin > clock, here(a.begin)
		if a.held {
			seen.Begin = together.Never
		}
	}
	seen.Start = here(a.start)
	return seen
}

func (t *Together) seen() (list []together.Seen) {
	for i := range t.sites {
		list = append(list, t.sites[i].seen)
	}
	return list
}

// act carries out an action. The next look shows whether it has had an effect.
func (t *Together) act(a together.Action, now time.Duration) {
	h := t.halves[a.Half]
	switch a.Kind {
	case together.Begin:
		t.run(h, h.system.begin(h.ID, a.At-now))
	case together.Requeue:
		name := h.Cluster.Name
		out := t.run(h, fmt.Sprintf("d=$HOME/%s; cd; ", h.dir)+h.system.requeue(h.ID, name+".sh", name+".out", a.At-now))
		if id, ok := h.system.id(out); ok {
			h.ID = id
		}
	case together.Reserve:
		t.reserve(a.At, now)
	case together.Unreserve:
		t.unreserve()
	}
}

// run runs a command at the half's cluster and returns its output.
func (t *Together) run(h *Half, command string) (output string) {
	output, err := h.here(context.Background(), command+"\n")
	if err != nil {
		t.log(h, err.Error())
	}
	return output
}

// reserve asks for a reservation for each half. If one is refused, the others are given back.
func (t *Together) reserve(at, now time.Duration) {
	t.each(func(i int, h *Half) {
		if _, err := h.here(context.Background(), h.system.reserve(h.ID, "zipper-"+t.Job, at-now)+"\n"); err != nil {
			t.log(h, "no reservation: "+err.Error())
			return
		}
		t.reserved[i] = true
	})
	granted := !slices.Contains(t.reserved, false)
	if !granted {
		t.unreserve()
	}
	t.machine.Reserved(at, granted)
}

func (t *Together) unreserve() {
	t.each(func(i int, h *Half) {
		if t.reserved[i] {
			t.reserved[i] = false
			t.run(h, h.system.unreserve(h.ID, "zipper-"+t.Job))
		}
	})
}

// commit opens the gates of all halves. A batch system must not requeue a half alone afterwards.
func (t *Together) commit(ctx context.Context) error {
	errs := make([]error, len(t.halves))
	t.each(func(i int, h *Half) {
		for until := time.Now().Add(commitTime); time.Now().Before(until); time.Sleep(lookTime) {
			if _, errs[i] = h.here(ctx, fmt.Sprintf("%s && echo go >\"$HOME/%s/%s.go\"\n", h.system.keep(h.ID), h.dir,
				h.Cluster.Name)); errs[i] == nil || ctx.Err() != nil {
				return
			}
		}
	})
	if err := errors.Join(append(errs, ctx.Err())...); err != nil {
		return err
	}
	for i := range t.sites {
		t.log(t.halves[i], "begins; started at "+t.clock(t.sites[i].seen.Start))
	}
	text := fmt.Sprintf("all halves have begun, in attempt %d", len(t.machine.Attempts()))
	t.logLine(text)
	t.tell(text)
	return nil
}

// failure returns the error for the action Fail.
func (t *Together) failure(a together.Action) error {
	h, s := t.halves[a.Half], &t.sites[a.Half]
	at := fmt.Sprintf("cluster %s: %s%s", h.Cluster.Name, h.Name(), on(h.Where()))
	switch a.Reason {
	case together.HalfHeld:
		return fmt.Errorf("%s stays held although it is released: ask the administrators of the cluster, or look at its state (%s)",
			at, h.now.state)
	case together.OutOfReach:
		return fmt.Errorf("%s: its batch system has not answered for an hour (%w): the halves are cancelled where that is possible; submit the job again when it answers",
			at, s.failure)
	}
	why := h.now.why
	if why == "" {
		why = "ended: " + h.now.state + h.lastWords()
	}
	return fmt.Errorf("%s %s, before all halves ran; the others are cancelled, submit the job again", at, why)
}

// lastWords returns the end of the half's output, for an error.
func (h *Half) lastWords() string {
	out, err := h.here(context.Background(), fmt.Sprintf("tail -n 3 \"$HOME/%s/%s.out\" 2>/dev/null\n:\n", h.dir, h.Cluster.Name))
	if out = strings.TrimSpace(out); err != nil || out == "" {
		return ""
	}
	return " (" + strings.ReplaceAll(out, "\n", "; ") + ")"
}
