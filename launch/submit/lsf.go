package submit

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// lsf is IBM Spectrum LSF.
type lsf struct{}

func (lsf) name() string { return "LSF" }

func (lsf) valid(o string) bool {
	return strings.HasPrefix(o, "-") && o != "-r" && !strings.ContainsAny(o, "\n")
}

func (lsf) header(name, output string, ranks int, options []string, _ bool) string {
	var b strings.Builder
	for _, o := range append([]string{"-rn", "-J " + name, "-o /dev/null", fmt.Sprintf("-n %d", ranks)}, options...) {
		fmt.Fprintf(&b, "#BSUB %s\n", o)
	}
	// LSF has the output of a job only when the job has ended, and adds a report.
	return b.String() + "exec >>\"" + output + "\" 2>&1\n"
}

// lsfTime returns the option for a begin time, which LSF has in minutes.
func lsfTime(wait time.Duration) string {
	if wait <= 0 {
		return "-bn"
	}
	return fmt.Sprintf("-b $(date -d '+%d seconds' +%%Y:%%m:%%d:%%H:%%M)", seconds(wait+time.Minute-1))
}

func (lsf) submit(script, _ string, wait time.Duration) string {
	begin := ""
	if wait > 0 {
		begin = lsfTime(wait) + " "
	}
	return fmt.Sprintf("bsub %s<\"$d/%s\"", begin, script)
}

var lsfID = regexp.MustCompile(`Job <([0-9]+)> is submitted`)

func (lsf) id(output string) (string, bool) {
	id := first(lsfID, output)
	return id, id != ""
}

// show describes the job by the fields of bjobs -l, in a form for programs.
func (lsf) show(id, _ string) string {
	return `bjobs -noheader -o "stat exit_code start_time specified_start_time estimated_sim_start_time delimiter='|'" ` + id + " 2>&1\n:"
}

func (lsf) read(id, text string) (a answer, err error) {
	f := strings.Split(strings.TrimSpace(text), "|")
	if len(f) != 5 {
		if !strings.Contains(text, "is not found") {
			return a, fmt.Errorf("no state of job %s: %s", id, strings.TrimSpace(text))
		}
		return answer{state: "FORGOTTEN", phase: over, code: 1}, nil
	}
	switch a.state = f[0]; a.state {
	case "PEND", "PSUSP", "WAIT", "PROV":
		a.phase, a.held = queued, a.state == "PSUSP"
		a.begin, a.start = lsfDate(f[3]), lsfDate(f[4])
	case "RUN", "USUSP", "SSUSP":
		a.phase, a.start = started, lsfDate(f[2])
	case "DONE":
		a.phase = over
	case "EXIT":
		a.phase = over
		code, _ := strconv.Atoi(f[1])
		a.code = max(code, 1)
	default: // UNKWN, ZOMBI: the host of the job does not answer
		return a, fmt.Errorf("job %s is %s: its host does not answer", id, a.state)
	}
	return a, nil
}

// lsfDate reads a date, which has a year only if LSF is set up so.
func lsfDate(s string) int64 {
	s = strings.Join(strings.Fields(s), " ")
	for _, layout := range []string{"Jan 2 15:04:05 2006", "Jan 2 15:04 2006"} {
		for _, year := range []string{"", fmt.Sprintf(" %d", time.Now().Year())} {
			if at := localTime(layout, s+year); at != 0 {
				return at
			}
		}
	}
	return 0
}

func (lsf) begin(id string, wait time.Duration) string { return "bmod " + lsfTime(wait) + " " + id }

func (l lsf) requeue(id, _, _ string, wait time.Duration) string {
	return fmt.Sprintf("brequeue -r %s && { %s >/dev/null 2>&1 || :; }", id, l.begin(id, wait))
}

func (lsf) keep(string) string { return ":" } // it was submitted with -rn

func (lsf) cancel(id string) string { return "bkill " + id }

func (lsf) cancelNamed(name string) string { return "bkill -J " + name + " 0; :" }

func (lsf) reserve(string, string, time.Duration) string {
	return "echo zipper makes no reservations in LSF >&2; false"
}

func (lsf) unreserve(string, string) string { return ":" }
