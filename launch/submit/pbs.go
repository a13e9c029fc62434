package submit

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// pbs is OpenPBS and PBS Professional. Users may not requeue jobs there, so a half is deleted and
// submitted again, which loses its age.
type pbs struct{}

func (pbs) name() string { return "PBS" }

func (pbs) valid(o string) bool {
	return strings.HasPrefix(o, "-") && !strings.HasPrefix(o, "-r") && !strings.ContainsAny(o, "\n")
}

func (pbs) header(name, output string, ranks int, options []string, _ bool) string {
	var b strings.Builder
	for _, o := range append([]string{"-r n", "-N " + name, "-j oe", "-o /dev/null",
		fmt.Sprintf("-l select=%d:ncpus=1:mpiprocs=1", ranks)}, options...) {
		fmt.Fprintf(&b, "#PBS %s\n", o)
	}
	// PBS has the output of a job only when the job has ended.
	return b.String() + "exec >>\"" + output + "\" 2>&1\n"
}

// pbsTime returns the option for a begin time.
func pbsTime(wait time.Duration) string {
	return fmt.Sprintf("-a $(date -d '+%d seconds' +%%Y%%m%%d%%H%%M.%%S)", max(1, seconds(wait)))
}

func (pbs) submit(script, _ string, wait time.Duration) string {
	begin := ""
	if wait > 0 {
		begin = pbsTime(wait) + " "
	}
	return fmt.Sprintf("qsub %s\"$d/%s\"", begin, script)
}

var pbsID = regexp.MustCompile(`^[0-9]+(\.[A-Za-z0-9_.-]+)?$`)

func (pbs) id(output string) (string, bool) {
	id := strings.TrimSpace(output)
	return id, pbsID.MatchString(id)
}

// show describes the job; its estimate is the one that qstat -T shows.
func (pbs) show(id, _ string) string { return "qstat -x -f " + id + " 2>&1\n:" }

func (pbs) read(id, text string) (a answer, err error) {
	f := map[string]string{}
	for line := range strings.Lines(strings.ReplaceAll(text, "\n\t", "")) {
		if k, v, ok := strings.Cut(strings.TrimSpace(line), " = "); ok {
			f[k] = v
		}
	}
	switch a.state = f["job_state"]; a.state {
	case "":
		if !strings.Contains(text, "Unknown Job Id") {
			return a, fmt.Errorf("no state of job %s: %s", id, strings.TrimSpace(text))
		}
		a.state, a.phase, a.code = "FORGOTTEN (PBS keeps no history of jobs: job_history_enable)", over, 1
	case "Q", "W", "H", "T":
		a.phase, a.held, a.reason = queued, a.state == "H", f["comment"]
		a.start = localTime(time.ANSIC, f["estimated.start_time"])
		if a.state == "W" {
			a.begin = localTime(time.ANSIC, f["Execution_Time"])
		}
	case "R", "S", "U":
		a.phase, a.start = started, localTime(time.ANSIC, f["stime"])
	case "E":
		a.phase = changing
	default: // F, X, M
		a.phase = over
		switch code, err := strconv.Atoi(f["Exit_status"]); {
		case err != nil || code < 0: // it has not run
			a.code = 1
		case code > 256: // PBS adds 256 to the number of a signal
			a.code = code - 256 + 128
		default:
			a.code = code
		}
	}
	return a, nil
}

func (pbs) begin(id string, wait time.Duration) string { return "qalter " + pbsTime(wait) + " " + id }

func (p pbs) requeue(id, script, output string, wait time.Duration) string {
	return "qdel " + id + " && " + p.submit(script, output, wait)
}

func (pbs) keep(string) string { return ":" } // it was submitted with -r n

func (pbs) cancel(id string) string { return "qdel " + id }

func (pbs) cancelNamed(name string) string {
	return "j=$(qselect -u \"$(id -un)\" -N " + name + ") && { [ -z \"$j\" ] || qdel $j; }"
}

func (pbs) reserve(string, string, time.Duration) string {
	return "echo zipper makes no reservations in PBS >&2; false"
}

func (pbs) unreserve(string, string) string { return ":" }
