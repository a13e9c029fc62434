package submit

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/leidenzipper/zipper/internal/wholefile"
	"github.com/leidenzipper/zipper/launch/together"
)

// report tells the user about halves and attempts that have changed, and writes the status.
func (t *Together) report(now time.Duration) {
	var lines []string
	for i, h := range t.halves {
		phase, details := t.describe(i)
		if lines = append(lines, fmt.Sprintf("cluster %s: %s%s: %s%s", h.Cluster.Name, h.Name(), on(h.Where()), phase, details)); phase != t.phases[i] {
			t.phases[i] = phase
			t.log(h, phase+details)
			if t.sites[i].seen.State == together.Running {
				t.tell(lines[i])
			}
		}
	}
	attempts := t.machine.Attempts()
	for i, a := range attempts {
		lines = append(lines, t.attempt(i, a))
		if a.To != together.Never && i >= t.attempts {
			t.attempts = i + 1
			t.logLine(lines[len(lines)-1])
			t.tell(lines[len(lines)-1])
		}
	}
	t.writeStatus(fmt.Sprintf("job %s at %s\n  %s\n", t.Job, t.clock(now), strings.Join(lines, "\n  ")))
}

// describe returns for what a half waits, and where and until when.
func (t *Together) describe(i int) (phase, details string) {
	s := &t.sites[i]
	switch {
	case s.failure != nil:
		return "its batch system does not answer", fmt.Sprintf(" since %s (%v); it is asked again for an hour",
			s.away.Format(time.TimeOnly), s.failure)
	case s.seen.State == together.Running:
		return "has started, and waits for " + t.others(i), fmt.Sprintf(" since %s, until %s at the latest; then it is requeued",
			t.clock(s.seen.Start), t.clock(s.seen.Start+t.Settings.IdleLimit))
	case s.seen.State == together.Away:
		return "is about to leave its nodes", ""
	case s.seen.Deferred && s.seen.Begin == together.Never:
		return "is held", "; it is released, for an hour at most"
	case s.seen.Deferred:
		return "is deferred for " + t.others(i), fmt.Sprintf(", until %s at the latest; alone it could start at %s",
			t.clock(s.seen.Begin), t.clock(s.seen.Start))
	}
	details = ", expected to start at " + t.clock(s.seen.Start)
	if reason := t.halves[i].now.reason; reason != "" && reason != "None" {
		details += " (" + reason + ")"
	}
	return "is in the queue", details
}

// others returns the halves that do not run, other than one, with their places.
func (t *Together) others(than int) string {
	var names []string
	for i, h := range t.halves {
		if i != than && t.sites[i].seen.State != together.Running {
			names = append(names, fmt.Sprintf("cluster %s (%s%s)", h.Cluster.Name, h.Name(), on(h.Where())))
		}
	}
	if len(names) == 0 {
		return "the other halves to leave their nodes"
	}
	return strings.Join(names, ", ")
}

// attempt describes an attempt.
func (t *Together) attempt(i int, a together.Attempt) string {
	text := fmt.Sprintf("attempt %d, from %s: ", i+1, t.clock(a.From))
	switch {
	case a.Early < 0:
		return text + "no half has started yet"
	case a.To == together.Never:
		return text + fmt.Sprintf("cluster %s started at %s", t.halves[a.Early].Cluster.Name, t.clock(a.Started))
	}
	text += fmt.Sprintf("cluster %s started at %s and ", t.halves[a.Early].Cluster.Name, t.clock(a.Started))
	waited := (a.To - a.Started).Round(time.Second)
	if a.Lost {
		return text + fmt.Sprintf("lost its nodes after %v (a preemption, or a failed node); both begin again", waited)
	}
	return text + fmt.Sprintf("was requeued after %v, because cluster %s had not started", waited,
		t.halves[max(a.Late, 0)].Cluster.Name)
}

// clock returns the wall clock's time at one of the machine's times.
func (t *Together) clock(at time.Duration) string {
	if at == together.Never {
		return "a time that is not known yet"
	}
	when := t.began.Add(at)
	if time.Until(when).Abs() > 12*time.Hour {
		return when.Format("Jan 2 15:04")
	}
	return when.Format(time.TimeOnly)
}

func (t *Together) log(h *Half, text string) { t.logLine("cluster " + h.Cluster.Name + ": " + text) }

func (t *Together) logLine(text string) {
	fmt.Fprintf(t.Log, "zipper: job %s, %s: %s\n", t.Job, time.Now().Format(time.TimeOnly), text)
}

// tell passes a text to the user's command, which has some seconds.
func (t *Together) tell(text string) {
	if t.Notify == "" {
		return
	}
	cmd := exec.Command("sh", "-c", t.Notify)
	cmd.Stdin = strings.NewReader("zipper: job " + t.Job + ": " + text + "\n")
	cmd.Env = append(os.Environ(), "ZIPPER_JOB="+t.Job)
	cmd.WaitDelay = shellDelay
	stop := time.AfterFunc(notifyTime, func() { _ = cmd.Process.Kill() })
	defer stop.Stop()
	if out, err := cmd.CombinedOutput(); err != nil {
		t.logLine(fmt.Sprintf("--notify: %v: %s", err, strings.TrimSpace(string(out))))
	}
}

// statusFile returns the file with the status of a job, for zipper submit --status on this host.
func statusFile(job string) (string, error) {
	home, err := os.UserHomeDir()
	return filepath.Join(home, ".zipper", "jobs", job, "status"), err
}

func (t *Together) writeStatus(text string) {
	file, err := statusFile(t.Job)
	if err == nil {
		err = os.MkdirAll(filepath.Dir(file), 0o700)
	}
	if err == nil {
		err = wholefile.Write(file, 0o600, func(w io.Writer) error { _, err := io.WriteString(w, text); return err })
	}
	if err != nil {
		t.logLine(fmt.Sprintf("no status: %v", err))
	}
}

func (t *Together) clearStatus() {
	if file, err := statusFile(t.Job); err == nil {
		_ = os.Remove(file)
		_ = os.Remove(filepath.Dir(file)) // it has files of a half at this host, or none
	}
}

// Status returns the status of a job whose halves wait to begin together, or of all such jobs of
// the user's at this host if job is empty.
func Status(job string) (string, error) {
	pattern := job
	if job == "" {
		pattern = "*"
	}
	file, err := statusFile(pattern)
	if err != nil {
		return "", err
	}
	files, err := filepath.Glob(file)
	if err != nil {
		return "", err
	}
	var all strings.Builder
	for _, f := range files {
		text, err := os.ReadFile(f)
		if errors.Is(err, os.ErrNotExist) {
			continue // the job begins right now
		}
		if err != nil {
			return "", err
		}
		all.Write(text)
		if info, err := os.Stat(f); err == nil && time.Since(info.ModTime()) > staleTime {
			fmt.Fprintf(&all, "  zipper submit does not run any more: its halves end by themselves; cancel them to be rid of them now, and remove %s\n",
				filepath.Dir(f))
		}
	}
	switch {
	case all.Len() > 0:
		return all.String(), nil
	case job == "":
		return "no job waits to begin\n", nil
	}
	return "", fmt.Errorf("job %s does not wait to begin: it runs, or has ended, or was submitted by another user or host", job)
}
