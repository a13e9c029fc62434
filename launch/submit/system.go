package submit

import (
	"fmt"
	"math"
	"strings"
	"time"
)

// system is a batch system: how a job is submitted to it, asked about and changed by commands for a
// shell at the cluster. Commands end with a status other than 0 if they fail.
type system interface {
	// name is the system's name, as in "Slurm job 12".
	name() string
	// valid tells whether a text is an option for a batch script, one that does not requeue the
	// job.
	valid(option string) bool
	// header returns the lines of a batch script with its options, whose output goes to a file;
	// again tells that the job may be requeued.
	header(name, output string, ranks int, options []string, again bool) string
	// submit returns the command that submits a script whose output goes to a file, both of them
	// below $d. The job waits for at least the time. id finds its id in the command's output.
	submit(script, output string, wait time.Duration) string
	id(output string) (id string, ok bool)
	// show returns the command that describes a job; read reads its output. With a script, the
	// output has the estimated start of a job that is deferred, too.
	show(id, script string) string
	read(id, output string) (answer, error)
	// begin returns the command that sets the time for which a queued job waits at least.
	begin(id string, wait time.Duration) string
	// requeue returns the command that puts a running job back into the queue for a time. If the
	// job has another id then, the command prints it as submit does.
	requeue(id, script, output string, wait time.Duration) string
	// keep returns the command after which the job is not requeued any more.
	keep(id string) string
	// cancel returns the command that ends a job.
	cancel(id string) string
	// cancelNamed returns the command that ends the user's jobs with a name, of which there may be
	// none.
	cancelNamed(name string) string
	// reserve returns the command that makes a reservation for a job; unreserve ends it.
	reserve(id, name string, wait time.Duration) string
	unreserve(id, name string) string
}

// answer describes a batch job.
type answer struct {
	// state is the state in the system's words.
	state string
	phase phase
	// code is the exit status of a job that has ended, and why the system's reason for its end.
	code int
	why  string
	// reason is the system's reason why a job is queued, in its own words, or empty.
	reason string
	// held tells that a queued job is held, until its user or an administrator releases it.
	held bool
	// begin is the time before which a queued job does not start. start is the start of a running
	// job, and the estimate for a queued one. Zero means that there is none. Times are local times
	// at the cluster, in seconds, without their zone.
	begin, start int64
}

// phase is the phase of a batch job.
type phase uint8

const (
	// queued is the phase of a job that has not started.
	queued phase = iota + 1
	// started is the phase of a job that has nodes.
	started
	// changing is the phase of a job that gives its nodes back, to end or to be queued again.
	changing
	// over is the phase of a job that has ended.
	over
)

// systemOf returns the batch system that system: in a job file names.
func systemOf(name string) (system, error) {
	switch name {
	case "", "slurm":
		return slurm{}, nil
	case "pbs":
		return pbs{}, nil
	case "lsf":
		return lsf{}, nil
	}
	return nil, fmt.Errorf("system: %s: want slurm, pbs or lsf", name)
}

// seconds returns a time in whole seconds, rounded up.
func seconds(d time.Duration) int { return max(0, int(math.Ceil(d.Seconds()))) }

// localTime reads a time such as 2026-01-31T12:00:00; it returns 0 if s is none.
func localTime(layout, s string) int64 {
	t, err := time.Parse(layout, strings.TrimSpace(s))
	if err != nil {
		return 0
	}
	return t.Unix()
}
